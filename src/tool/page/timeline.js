/* The timeline: uPlot draws axes and lines, the layer the allocations between them. */
const timeline = (() => {
  const MARGIN = 1.04; /* room above the highest line */
  const BANDS = 32; /* groups with a band of their own */
  const incrs = Array.from({length: 50}, (_, k) => 2 ** k);

  function make(app) {
    const {m} = app, plot = $("plot"), stacked = layer.make(m);
    const full = {x0: 0, x1: 1, y0: 0, y1: Math.max(1, m.top, m.doc.source.limit < 1.5 * m.top ? m.doc.source.limit : 0) * MARGIN};
    const view = {...full};
    let u, overview, pressed = null, stale = true;
    const line = (name) => el("div", {class: name});
    const lines = {moment: line("at moment"), compare: line("at compare")};

    /* ---- across: moments or microseconds ---- */

    const timed = () => app.across === "time";
    const length = () => timed() ? Math.max(1, m.times[m.entries]) : m.entries + 1;
    const xOf = (e) => timed() ? m.times[e] : e + 0.5;
    /* The moment that x shows: memory after all entries up to then. */
    function momentOf(x) {
      if (!timed()) return Math.min(m.entries, Math.max(0, Math.floor(x)));
      let lo = 0, hi = m.entries;
      while (lo < hi) { const mid = lo + hi >> 1; if (m.times[mid] <= x) lo = mid + 1; else hi = mid; }
      return lo;
    }

    function bounds(width) {
      const out = new Int32Array(width + 1);
      for (let c = 0; c <= width; c++) out[c] = momentOf(view.x0 + (view.x1 - view.x0) * c / width);
      if (out[width] === m.entries) out[width]++;
      return out;
    }

    /* ---- what is drawn ---- */

    /* Points of the lines: for each column the moment that the layer shows, for reserved the most. */
    function series(b, width) {
      const xs = new Float64Array(width), held = new Float64Array(width), used = new Float64Array(width);
      for (let c = 0; c < width; c++) {
        xs[c] = view.x0 + (view.x1 - view.x0) * c / width;
        const e = stacked.momentAt(c);
        used[c] = m.active[e];
        let most = m.reserved[e];
        for (let k = b[c]; k < b[c + 1]; k++) if (m.reserved[k] > most) most = m.reserved[k];
        held[c] = most;
      }
      return [xs, held, used];
    }

    /* Colours of all marks; lit blocks are written over and put back. */
    const lut = new Uint32Array(layer.FIRST + m.lives + BANDS + 1);
    let lutOf = null, lit = new Map();
    function recolour() {
      const t = app.theme, s = app.scheme, {of} = model.groupings[s.by], bands = layer.FIRST + m.lives;
      const shades = new Map([...s.of].map(([k, c]) => [k, app.only === null || app.only === k ? c : colour.mix(c, t.card, 0.78)]));
      for (let i = 0; i < m.lives; i++) lut[layer.FIRST + i] = shades.get(of(m, i));
      s.keys.slice(0, BANDS).forEach((k, g) => { lut[bands + g] = shades.get(k); });
      lut[bands + BANDS] = lut[layer.LUMPED] = t.tiny;
      lut[layer.HELD] = t.held;
      lutOf = app.colours;
      lit = new Map();
    }
    /* Lights what is hovered and selected; returns the columns that look different now. */
    function light() {
      const wanted = new Map();
      if (app.hovered >= 0) wanted.set(app.hovered, 0.35);
      if (app.selected >= 0) wanted.set(app.selected, 0.62);
      let from = stacked.width, to = 0;
      const touch = (i) => {
        const [a, b] = stacked.columns(i);
        from = Math.min(from, a);
        to = Math.max(to, b);
      };
      for (const [i, was] of lit) if (was.part !== wanted.get(i)) { lut[layer.FIRST + i] = was.colour; lit.delete(i); touch(i); }
      for (const [i, part] of wanted) {
        if (lit.has(i)) continue;
        lit.set(i, {part, colour: lut[layer.FIRST + i]});
        lut[layer.FIRST + i] = colour.mix(app.scheme.of.get(model.groupings[app.scheme.by].of(m, i)), app.theme.ink, part);
        touch(i);
      }
      return [from, to];
    }

    /* The picture lies under the canvas of uPlot, so lighting a block draws nothing else again. */
    function paint(everything) {
      if (lutOf !== app.colours) { recolour(); everything = true; }
      const [from, to] = light(), crisp = !timed() && (view.x1 - view.x0) / stacked.width < 0.34;
      const look = {lut, hatch: app.theme.card, edge: app.theme.edge, crisp};
      if (everything) stacked.paint(look, 0, stacked.width);
      else if (from < to) stacked.paint(look, from, to);
    }

    /* Words of the program at the top, the failures across. */
    function drawMarks() {
      const {ctx, bbox} = u, ratio = devicePixelRatio || 1;
      const css = (name) => colour.css(app.theme[name]);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
      ctx.clip();
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      for (const s of m.spans) {
        const a = u.valToPos(xOf(s.entry), "x", true), b = u.valToPos(xOf(s.to), "x", true);
        if (b < bbox.left || a > bbox.left + bbox.width) continue;
        ctx.fillStyle = css("span");
        ctx.fillRect(a, bbox.top - 15 * ratio, Math.max(1, b - a), 12 * ratio);
        const name = m.strings[s.name];
        if (b - a > 60 * ratio) {
          ctx.fillStyle = css("ink");
          ctx.save();
          ctx.beginPath();
          ctx.rect(a, 0, b - a - 4, bbox.top);
          ctx.clip();
          ctx.fillText(name, Math.max(a, bbox.left) + 4 * ratio, bbox.top - 9 * ratio);
          ctx.restore();
        }
      }
      if (m.doc.source.limit !== null) {
        const y = Math.round(u.valToPos(m.doc.source.limit, "y", true));
        if (y >= bbox.top && y <= bbox.top + bbox.height) {
          ctx.strokeStyle = ctx.fillStyle = css("bad");
          ctx.lineWidth = ratio;
          ctx.setLineDash([2 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
          ctx.fillText(`limit${m.doc.source.guessed ? ", about" : ""} ${text.bytes(m.doc.source.limit)}`, bbox.left + 6 * ratio, y - 8 * ratio);
          ctx.setLineDash([]);
        }
      }
      ctx.strokeStyle = ctx.fillStyle = css("bad");
      ctx.lineWidth = 1.5 * ratio;
      let labelled = -Infinity;
      for (const k of m.ooms) {
        const x = Math.round(u.valToPos(xOf(k.entry), "x", true));
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        const wish = u.valToPos(m.reserved[k.entry] + k.size, "y", true), now = u.valToPos(m.reserved[k.entry], "y", true);
        ctx.setLineDash([5 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.globalAlpha = 0.35;
        ctx.fillRect(x - 4 * ratio, Math.max(bbox.top, wish), 8 * ratio, Math.max(0, now - Math.max(bbox.top, wish)));
        ctx.globalAlpha = 1;
        if (x - labelled < 180 * ratio) continue;
        labelled = x;
        const label = `out of memory: ${text.bytes(k.size)} asked`, wide = ctx.measureText(label).width + 10 * ratio;
        const left = x + wide + 4 * ratio > bbox.left + bbox.width ? x - wide - 4 * ratio : x + 4 * ratio;
        ctx.fillStyle = css("card");
        ctx.fillRect(left, bbox.top + 4 * ratio, wide, 16 * ratio);
        ctx.strokeRect(left, bbox.top + 4 * ratio, wide, 16 * ratio);
        ctx.fillStyle = css("bad");
        ctx.fillText(label, left + 5 * ratio, bbox.top + 12 * ratio);
      }
      ctx.restore();
    }

    function options(width, height) {
      const css = (name) => () => colour.css(app.theme[name]);
      const axis = {stroke: css("quiet"), grid: {stroke: "rgb(128 128 128 / 22%)", width: 1}, ticks: {stroke: css("rule"), width: 1},
                    font: "12px system-ui, sans-serif"};
      const stepped = uPlot.paths.stepped({align: 1});
      return {
        width, height, padding: [18, 26, 0, 0], legend: {show: false},
        cursor: {show: false}, select: {show: false},
        scales: {x: {time: false, range: () => [view.x0, view.x1]}, y: {range: () => [view.y0, view.y1]}},
        axes: [
          {...axis, size: 28, values: (_, at) => at.map((v) => timed() ? text.time(v) : Number.isInteger(v) ? text.count(v) : "")},
          {...axis, size: 68, incrs, values: (_, at) => at.map(text.tick)},
        ],
        series: [
          {},
          {stroke: css("reserved"), width: 2, paths: stepped, points: {show: false}},
          {stroke: css("active"), width: 1, paths: stepped, points: {show: false}},
        ],
        hooks: {draw: [() => drawMarks()]},
      };
    }

    function place(node, e) {
      const x = e === null ? -1 : u.valToPos(xOf(e), "x");
      node.hidden = !(x >= 0 && x <= u.over.clientWidth);
      node.style.transform = `translateX(${x}px)`;
    }

    /* stale: the view or the arrangement changed; else at most colours did. */
    function draw() {
      const {left, top, width, height} = u.bbox, ratio = devicePixelRatio || 1;
      if (stale) {
        stacked.resize(Math.round(width), Math.round(height));
        Object.assign(stacked.canvas.style, {left: left / ratio + "px", top: top / ratio + "px", width: width / ratio + "px", height: height / ratio + "px"});
        const b = bounds(stacked.width);
        stacked.draw(b, view.y0, (view.y1 - view.y0) / stacked.height);
        const data = series(b, stacked.width);
        u.batch(() => {
          u.setData(data, false);
          u.setScale("x", {min: view.x0, max: view.x1});
          u.setScale("y", {min: view.y0, max: view.y1});
        });
        const part = (v) => `${100 * v / length()}%`;
        brush.style.left = part(view.x0);
        brush.style.width = part(view.x1 - view.x0);
      }
      paint(stale);
      stale = false;
      place(lines.moment, app.moment);
      place(lines.compare, app.compare);
    }

    /* ---- moving about ---- */

    function clampView() {
      const least = timed() ? 1 : 8, span = Math.min(length(), Math.max(least, view.x1 - view.x0));
      view.x0 = Math.min(length() - span, Math.max(0, view.x0));
      view.x1 = view.x0 + span;
      const tall = Math.min(full.y1, Math.max(4096, view.y1 - view.y0));
      view.y0 = Math.min(full.y1 - tall, Math.max(0, view.y0));
      view.y1 = view.y0 + tall;
      stale = true;
      app.redraw();
    }
    function zoom(factor, x) {
      x = x === undefined ? (xOf(app.moment) >= view.x0 && xOf(app.moment) <= view.x1 ? xOf(app.moment) : (view.x0 + view.x1) / 2) : x;
      view.x0 = x - (x - view.x0) * factor;
      view.x1 = x + (view.x1 - x) * factor;
      clampView();
    }
    function zoomUp(factor, y) {
      y = y === undefined ? m.active[app.moment] : y;
      view.y0 = y - (y - view.y0) * factor;
      view.y1 = y + (view.y1 - y) * factor;
      clampView();
    }
    function pan(dx, dy) {
      view.x0 += dx; view.x1 += dx; view.y0 += dy; view.y1 += dy;
      clampView();
    }
    function all() {
      Object.assign(view, full, {x1: length()});
      clampView();
    }
    /* Scrolls until a moment is in view. */
    function reveal(e) {
      const x = xOf(e), span = view.x1 - view.x0;
      if (x >= view.x0 && x <= view.x1) return;
      view.x0 = x - span / 2;
      view.x1 = x + span / 2;
      clampView();
    }
    /* Shows the whole life of a block with some room beside it. */
    function frame(i) {
      const a = xOf(Math.max(0, m.begin[i])), b = xOf(Math.min(m.entries, m.end[i])), room = Math.max(4, (b - a) * 0.2);
      view.x0 = a - room;
      view.x1 = b + room;
      clampView();
    }

    const life = (mark) => mark >= layer.FIRST && mark < layer.FIRST + m.lives ? mark - layer.FIRST : -1;
    const pixels = (event) => {
      const r = u.over.getBoundingClientRect(), sx = stacked.width / r.width, sy = stacked.height / r.height;
      const x = event.clientX - r.left, y = event.clientY - r.top;
      return {x, y, px: Math.floor(x * sx), py: Math.floor(y * sy), vx: view.x0 + (view.x1 - view.x0) * x / r.width,
              vy: view.y1 - (view.y1 - view.y0) * y / r.height, wide: r.width, high: r.height};
    };

    function wire() {
      const over = u.over;
      over.append(lines.moment, lines.compare);
      over.addEventListener("wheel", (event) => {
        event.preventDefault();
        const p = pixels(event), along = event.shiftKey ? event.deltaY || event.deltaX : event.deltaY;
        const factor = Math.exp(Math.max(-120, Math.min(120, along)) * 0.0025);
        if (event.shiftKey) zoomUp(factor, p.vy);
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((view.x1 - view.x0) * event.deltaX / p.wide, 0);
        else zoom(factor, p.vx);
      }, {passive: false});
      over.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        pressed = {x: event.clientX, y: event.clientY, view: {...view}, moved: false};
        over.setPointerCapture(event.pointerId);
      });
      over.addEventListener("pointermove", (event) => {
        const p = pixels(event);
        if (pressed) {
          const dx = event.clientX - pressed.x, dy = event.clientY - pressed.y;
          if (Math.abs(dx) + Math.abs(dy) > 4) pressed.moved = true;
          if (!pressed.moved) return;
          const v = pressed.view, mx = -dx * (v.x1 - v.x0) / p.wide, my = dy * (v.y1 - v.y0) / p.high;
          Object.assign(view, {x0: v.x0 + mx, x1: v.x1 + mx, y0: v.y0 + my, y1: v.y1 + my});
          app.hover(-1);
          clampView();
          return;
        }
        const mark = stacked.markAt(p.px, p.py), e = stacked.momentAt(p.px);
        app.hover(life(mark), event, e, mark);
      });
      over.addEventListener("pointerup", (event) => {
        const was = pressed;
        pressed = null;
        if (!was || was.moved) return;
        const p = pixels(event), mark = stacked.markAt(p.px, p.py);
        app.choose(stacked.momentAt(p.px), life(mark));
      });
      over.addEventListener("pointercancel", () => { pressed = null; });
      over.addEventListener("pointerleave", () => { if (!pressed) app.hover(-1); });
      over.addEventListener("dblclick", () => all());
    }

    /* ---- the whole run, with the view as a window that can be moved ---- */

    const brush = el("div", {class: "brush"});
    function makeOverview(width) {
      const points = Math.min(m.entries + 1, 1500), xs = [], held = [], used = [];
      for (let k = 0; k < points; k++) {
        const from = momentOf(length() * k / points), to = Math.max(from + 1, momentOf(length() * (k + 1) / points));
        let a = 0, r = 0;
        for (let e = from; e < to; e++) { a = Math.max(a, m.active[e]); r = Math.max(r, m.reserved[e]); }
        xs.push(length() * k / points);
        held.push(r);
        used.push(a);
      }
      const css = (name) => () => colour.css(app.theme[name]);
      if (overview) overview.destroy();
      overview = new uPlot({
        width, height: 46, padding: [2, 26, 2, 68], legend: {show: false}, cursor: {show: false},
        scales: {x: {time: false, range: () => [0, length()]}, y: {range: () => [0, full.y1]}},
        axes: [{show: false}, {show: false}],
        series: [{}, {stroke: css("reserved"), width: 1, points: {show: false}},
                 {fill: css("tiny"), width: 0, points: {show: false}}],
      }, [xs, held, used], $("overview"));
      overview.over.append(brush);
      let grip = null;
      overview.over.addEventListener("pointerdown", (event) => {
        const r = overview.over.getBoundingClientRect(), x = (event.clientX - r.left) / r.width * length();
        const span = view.x1 - view.x0, near = 6 / r.width * length();
        const edge = Math.abs(x - view.x0) < near ? "x0" : Math.abs(x - view.x1) < near ? "x1" : null;
        if (!edge && (x < view.x0 || x > view.x1)) { view.x0 = x - span / 2; view.x1 = x + span / 2; }
        grip = {x, edge, ...view};
        overview.over.setPointerCapture(event.pointerId);
        clampView();
      });
      overview.over.addEventListener("pointermove", (event) => {
        if (!grip) return;
        const r = overview.over.getBoundingClientRect(), dx = (event.clientX - r.left) / r.width * length() - grip.x;
        if (grip.edge) {
          view[grip.edge] = grip[grip.edge] + dx;
          if (view.x0 > view.x1) [view.x0, view.x1] = [view.x1, view.x0];
        } else { view.x0 = grip.x0 + dx; view.x1 = grip.x1 + dx; }
        clampView();
      });
      for (const name of ["pointerup", "pointercancel"]) overview.over.addEventListener(name, () => { grip = null; });
    }

    /* ---- coming to life ---- */

    const heightNow = () => Math.max(260, Math.min(560, innerHeight - 330));
    function layout() {
      const width = Math.max(320, plot.clientWidth);
      if (!u) { u = new uPlot(options(width, heightNow()), [[0, 1], [0, 0], [0, 0]], plot); u.under.parentElement.prepend(stacked.canvas); wire(); }
      else u.setSize({width, height: heightNow()});
      makeOverview(width);
      stale = true;
      app.redraw();
    }
    /* The many groups that hold least are one group to the layer: it works once a column for each. */
    function rearrange() {
      const {of} = model.groupings[app.scheme.by], at = new Map(app.scheme.keys.map((k, i) => [k, Math.min(i, BANDS)]));
      stacked.rearrange(Math.max(1, Math.min(at.size, BANDS + 1)), (i) => at.get(of(m, i)), app.order === "group");
      stale = true;
      app.redraw();
    }
    function across() {
      const middle = momentOf((view.x0 + view.x1) / 2);
      all();
      reveal(middle);
      makeOverview(Math.max(320, plot.clientWidth));
    }

    all();
    rearrange();
    layout();
    return {draw, layout, rearrange, across, zoom, zoomUp, pan, all, reveal, frame, view, stacked,
            get length() { return length(); }, get node() { return plot; }, get over() { return u.over; },
            restyle: () => { u.redraw(false); overview.redraw(false); app.redraw(); }};
  }

  return {make, BANDS};
})();

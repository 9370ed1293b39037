/* The segments at the chosen moment: all memory that was held, to one scale, wrapped into rows like text. */
const map = (() => {
  const ROW = 15, GAP = 3, LABEL = 19, ROWS = 22; /* CSS pixels; ROWS is aimed at */

  function make(app) {
    const {m} = app, canvas = $("map-canvas"), context = canvas.getContext("2d");
    const base = document.createElement("canvas"), ground = base.getContext("2d"); /* all but what is lit */
    let rows = [], segments = [], parts = [], labels = [], at = -1, over = -1; /* rows: {y, ids}: part of each pixel, or -1 */
    let runs = [], partOf = new Map(); /* runs: for each part its stretches {x, y, w}; partOf: by life */

    /* Groups of segments that are counted together, largest first. */
    function groups() {
      const out = new Map();
      for (const s of segments) {
        const key = `${s.pool} ${s.stream} ${s.flags}`;
        let g = out.get(key);
        if (!g) out.set(key, g = {list: [], size: 0, free: 0, s});
        g.list.push(s);
        g.size += s.size;
        g.free += s.free;
      }
      const by = $("map-order").value;
      const order = by === "size" ? (a, b) => b.size - a.size : by === "free" ? (a, b) => b.free - a.free : (a, b) => a.address - b.address;
      for (const g of out.values()) g.list.sort(order);
      return [...out.values()].sort((a, b) => b.size - a.size);
    }

    function title(g) {
      const {s} = g, {streams, pools} = m.doc;
      const what = `${s.flags & model.EXPANDABLE ? "expandable " : ""}${s.flags & model.SMALL ? "small" : "large"}`;
      return `${s.pool ? "pool " + pools[s.pool] + ", " : ""}stream ${streams[s.stream]}, ${what}: ` +
        `${text.plural(g.list.length, "segment")}, ${text.bytes(g.size)}, ${text.bytes(g.free)} free`;
    }

    /* Which part each pixel shows: the one that fills most of it. */
    function spread(s, pixels, first) {
      const ids = new Int32Array(pixels), per = s.size / pixels;
      let k = 0;
      for (let x = 0; x < pixels; x++) {
        const from = s.address + x * per, to = from + per;
        let best = -1, most = -1;
        while (k < s.parts.length && s.parts[k].address + s.parts[k].size <= from) k++;
        for (let j = k; j < s.parts.length && s.parts[j].address < to; j++) {
          const share = Math.min(to, s.parts[j].address + s.parts[j].size) - Math.max(from, s.parts[j].address);
          if (share > most) { most = share; best = j; }
        }
        ids[x] = first + Math.max(0, best);
      }
      return ids;
    }

    function arrange() {
      const width = Math.max(300, canvas.parentElement.clientWidth - 32), list = groups();
      const total = list.reduce((sum, g) => sum + g.size, 0), per = Math.max(512, total / (width * ROWS));
      let y = 0;
      labels = [];
      rows = [];
      parts = [];
      for (const g of list) {
        labels.push({y, words: title(g)});
        y += LABEL;
        let row = {y, ids: new Int32Array(width).fill(-1)}, x = 0;
        const wrap = () => { rows.push(row); y += ROW + GAP; row = {y, ids: new Int32Array(width).fill(-1)}; x = 0; };
        for (const s of g.list) {
          const pixels = Math.max(2, Math.round(s.size / per)), ids = spread(s, pixels, parts.length);
          parts.push(...s.parts);
          if (x > 0 && pixels <= width && x + pixels > width && pixels < width / 3) wrap();
          for (let done = 0; done < pixels;) {
            const take = Math.min(width - x, pixels - done);
            row.ids.set(ids.subarray(done, done + take), x);
            done += take;
            x += take;
            if (x >= width) wrap();
          }
          x += 2;
        }
        if (x > 0) { rows.push(row); y += ROW + GAP; }
        y += 4;
      }
      runs = parts.map(() => []);
      for (const row of rows)
        for (let x = 0, to = 0; x < row.ids.length; x = to) {
          for (to = x + 1; to < row.ids.length && row.ids[to] === row.ids[x];) to++;
          if (row.ids[x] >= 0) runs[row.ids[x]].push({x, y: row.y, w: to - x});
        }
      partOf = new Map(parts.map((p, id) => [p.life, id]));
      const ratio = devicePixelRatio || 1;
      y = Math.max(20, y);
      canvas.style.width = width + "px";
      canvas.style.height = y + "px";
      canvas.width = base.width = Math.round(width * ratio);
      canvas.height = base.height = Math.round(y * ratio);
      ground.setTransform(ratio, 0, 0, ratio, 0, 0);
    }

    /* Hatching: rising lines for free memory that is stuck, falling for what waits for another stream. */
    function hatch(fill, stroke, rising) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const c = tile.getContext("2d");
      c.fillStyle = fill;
      c.fillRect(0, 0, 6, 6);
      c.strokeStyle = stroke;
      c.lineWidth = 1.2;
      c.beginPath();
      for (const d of [-6, 0, 6]) { c.moveTo(d, rising ? 6 : 0); c.lineTo(d + 6, rising ? 0 : 6); }
      c.stroke();
      return context.createPattern(tile, "repeat");
    }

    const tone = (c, p) => p.state === model.PENDING ? hatch(colour.css(c), colour.css(app.theme.card), false) : colour.css(c);

    function draw() {
      const t = app.theme, css = (name) => colour.css(t[name]), {of} = model.groupings[app.scheme.by];
      const stuck = hatch(css("free"), css("stuck"), true), tones = new Map();
      ground.clearRect(0, 0, base.width, base.height);
      ground.font = "12px system-ui, sans-serif";
      ground.textBaseline = "middle";
      ground.fillStyle = css("quiet");
      for (const l of labels) ground.fillText(l.words, 0, l.y + LABEL / 2);
      parts.forEach((p, id) => {
        if (p.state === model.FREE) ground.fillStyle = 2 * model.returnable(p) > p.size ? css("free") : stuck;
        else {
          const key = of(m, p.life), name = `${p.state} ${key}`;
          if (!tones.has(name)) {
            const c = app.scheme.of.get(key);
            tones.set(name, tone(app.only === null || app.only === key ? c : colour.mix(c, t.card, 0.78), p));
          }
          ground.fillStyle = tones.get(name);
        }
        for (const {x, y, w} of runs[id]) ground.fillRect(x, y, w, ROW);
      });
      ground.fillStyle = css("edge");
      ground.globalAlpha = 0.5;
      for (const list of runs) for (const {x, y, w} of list) if (w > 3) ground.fillRect(x + w - 1, y, 1, ROW);
      ground.globalAlpha = 1;
      light();
    }

    /* The ground, and on it what is hovered and selected. */
    function light() {
      const t = app.theme, {of} = model.groupings[app.scheme.by];
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.drawImage(base, 0, 0);
      context.scale(devicePixelRatio || 1, devicePixelRatio || 1);
      for (const [life, part] of [[app.hovered, 0.35], [app.selected, 0.62]]) {
        const id = life >= 0 ? partOf.get(life) : undefined;
        if (id === undefined) continue;
        context.fillStyle = tone(colour.mix(app.scheme.of.get(of(m, life)), t.ink, part), parts[id]);
        for (const {x, y, w} of runs[id]) context.fillRect(x, y, w, ROW);
      }
      context.strokeStyle = colour.css(t.ink);
      context.lineWidth = 2;
      for (const id of new Set([at, over]))
        for (const {x, y, w} of runs[id] || []) context.strokeRect(x + 1, y + 1, Math.max(1, w - 2), ROW - 2);
    }

    const words = (p) => {
      const s = p.segment, where = `at ${text.address(p.address)}, in a segment of ${text.bytes(s.size)}`;
      if (p.state === model.FREE) {
        const back = model.returnable(p);
        return `${text.bytes(p.size)} free ${where}; ${back === p.size ? "could go back to the driver" : back > 0 ? text.bytes(back) + " of it could go back to the driver" :
          `held by ${text.plural(s.parts.filter((q) => q.state !== model.FREE).length, "block")}`}`;
      }
      return `${text.bytes(p.size)} ${p.state === model.PENDING ? "waiting for another stream" : "in use"} ${where}; ${m.names[m.stack[p.life]]}`;
    };

    function find(event) {
      const r = canvas.getBoundingClientRect(), x = Math.floor(event.clientX - r.left), y = event.clientY - r.top;
      const row = rows.find((q) => y >= q.y && y < q.y + ROW);
      return row && x >= 0 && x < row.ids.length ? row.ids[x] : -1;
    }
    function choose(id) {
      at = id;
      if (id < 0) return;
      fill($("map-text"), words(parts[id]));
      app.select(parts[id].life, parts[id]);
      light();
    }

    canvas.addEventListener("pointermove", (event) => {
      const id = find(event);
      if (id === over) { if (id >= 0) app.tip(event); return; }
      over = id;
      const p = parts[id];
      if (!p) app.hover(-1);
      else if (p.life >= 0) app.hover(p.life, event, app.moment);
      else { app.hover(-1); app.tip(event, words(p)); }
      light();
    });
    canvas.addEventListener("pointerleave", () => { over = -1; app.hover(-1); light(); });
    canvas.addEventListener("click", (event) => choose(find(event)));
    canvas.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key];
      if (!step || parts.length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      choose(Math.min(parts.length - 1, Math.max(0, at + step)));
    });
    $("map-order").addEventListener("change", () => { at = -1; arrange(); draw(); });

    return {
      draw, light,
      update(list) {
        segments = list;
        at = over = -1;
        arrange();
        draw();
        fill($("map-text"), segments.length ? `${text.plural(segments.length, "segment")} at this moment; to one scale. Arrow keys walk through the blocks.`
          : "No memory was held at this moment.");
      },
    };
  }

  return {make};
})();

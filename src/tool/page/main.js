/* What is chosen, and who is told when it changes. */
const app = (() => {
  const app = {
    m: null, moment: 0, compare: null, selected: -1, part: null, hovered: -1,
    scheme: null, only: null, by: "stack", order: "age", across: "event", allHolders: false,
    theme: null, colours: 0, segments: [], shares: null, timeline: null, map: null,
  };
  let frame = 0, momentStale = true, mapStale = true, mapOf = -1; /* mapOf: the colours that the map has */

  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  /* ---- drawing, once for each frame of the screen ---- */

  app.redraw = () => { if (!frame) frame = requestAnimationFrame(draw); };
  function draw() {
    frame = 0;
    if (!app.timeline) return;
    app.timeline.draw();
    if (momentStale) {
      momentStale = mapStale = false;
      app.segments = app.m.placed ? model.segments(app.m, app.moment) : [];
      app.shares = model.shares(app.m, app.moment, app.segments);
      if (app.m.placed) app.map.update(app.segments);
      panels.shares(app);
      panels.holders(app);
      panels.pins(app);
      panels.events(app);
      panels.detail(app);
    } else if (mapStale) {
      mapStale = false;
      if (app.m.placed) { if (mapOf === app.colours) app.map.light(); else app.map.draw(); }
      mapOf = app.colours;
    }
  }

  /* ---- choices ---- */

  app.choose = (e, life) => {
    app.moment = Math.min(app.m.entries, Math.max(0, e));
    momentStale = true;
    if (life !== undefined) { app.selected = life; app.part = null; }
    app.timeline.reveal(app.moment);
    app.redraw();
  };
  app.select = (life, part = null) => {
    app.selected = life;
    app.part = life < 0 ? part : null;
    mapStale = true;
    panels.detail(app);
    app.redraw();
  };
  app.light = (key) => {
    app.only = key;
    app.colours++;
    mapStale = true;
    panels.holders(app);
    panels.detail(app);
    app.redraw();
  };
  app.colourBy = (by) => {
    if (app.scheme && app.scheme.by === by) return;
    app.only = null;
    restyle(by);
    $("colour").value = by;
    app.timeline.rearrange();
  };
  function restyle(by) {
    app.theme = colour.theme();
    app.scheme = colour.scheme(app.m, by, dark());
    app.colours++;
    momentStale = true;
    legend();
    if (app.timeline) app.timeline.restyle();
  }

  app.hover = (life, event, e, mark) => {
    if (life !== app.hovered) {
      app.hovered = life;
      mapStale = true;
      app.redraw();
    }
    const m = app.m;
    if (life >= 0) app.tip(event, ...panels.tip(m, life, e));
    else if (mark >= layer.FIRST) {
      const k = mark - layer.FIRST - m.lives, whose = k < timeline.BANDS ? model.groupings[app.scheme.by].name(m, app.scheme.keys[k]) : "many groups";
      app.tip(event, `Blocks too low to be drawn one by one, of ${whose}. Zoom in upwards to see them: Shift and the wheel.`);
    }
    else if (mark === layer.LUMPED) app.tip(event, "Blocks that the report has only as a sum.");
    else if (mark === layer.HELD) app.tip(event, `${text.bytes(m.reserved[e] - m.active[e])} reserved and not active, at event ${text.count(e)}`);
    else $("tip").hidden = true;
  };
  app.tip = (event, ...content) => {
    const tip = $("tip");
    if (content.length) fill(tip, ...content);
    tip.hidden = false;
    const {width, height} = tip.getBoundingClientRect();
    const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
    tip.style.transform = `translate(${Math.max(4, x)}px,${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 6))}px)`;
  };

  /* The next block up or down the stack at the moment. */
  function climb(step) {
    const {m} = app, list = [];
    for (let i = 0; i < m.lives && m.begin[i] < app.moment; i++) if (model.alive(m, i, app.moment)) list.push(i);
    if (list.length === 0) return;
    const at = list.indexOf(app.selected);
    app.select(list[at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + step))]);
  }
  /* The next event at which reserved memory changed, or memory ran out. */
  function jump(step) {
    const {m} = app;
    for (let e = app.moment + step; e >= 0 && e < m.entries; e += step)
      if (m.kind[e] >= model.MAP) { app.choose(e); return; }
  }

  /* ---- keys ---- */

  const part = (event) => (app.timeline.view.x1 - app.timeline.view.x0) * (event.shiftKey ? 0.5 : 0.1);
  const keys = [
    ["ArrowLeft", "← →", "one event back or on (Shift: a hundredth of the view)", (e) => walk(-1, e)],
    ["ArrowRight", null, null, (e) => walk(1, e)],
    ["ArrowUp", "↑ ↓", "the next block up or down the stack", () => climb(1)],
    ["ArrowDown", null, null, () => climb(-1)],
    ["+", "+ −", "zoom in or out around the moment", () => app.timeline.zoom(0.7)],
    ["=", null, null, () => app.timeline.zoom(0.7)],
    ["-", null, null, () => app.timeline.zoom(1 / 0.7)],
    ["a", "a d", "move the view left or right (Shift: by half)", (e) => app.timeline.pan(-part(e), 0)],
    ["d", null, null, (e) => app.timeline.pan(part(e), 0)],
    ["w", "w s", "zoom in or out upwards", () => app.timeline.zoomUp(0.7)],
    ["s", null, null, () => app.timeline.zoomUp(1 / 0.7)],
    ["0", "0", "show everything", () => app.timeline.all()],
    ["o", "o", "to the failure", () => app.m.oom && app.choose(app.m.oom.entry)],
    ["p", "p", "to the peak", () => app.choose(app.m.peak)],
    ["Home", "Home End", "to the beginning or the end", () => app.choose(0)],
    ["End", null, null, () => app.choose(app.m.entries)],
    ["n", "n N", "to the next or last change of reserved memory", () => jump(1)],
    ["N", null, null, () => jump(-1)],
    ["b", "b", "compare with this moment, or stop it", () => compare()],
    ["l", "l", "show only the group of the selected block, or all", () => {
      const key = app.selected < 0 ? null : model.groupings[app.scheme.by].of(app.m, app.selected);
      app.light(app.only === null ? key : null);
    }],
    ["Escape", "Esc", "select nothing", () => { app.only = null; app.colours++; app.select(-1); panels.holders(app); }],
    ["?", "?", "this list", () => $("help").showModal()],
  ];
  function walk(step, event) {
    const {view} = app.timeline, by = event.shiftKey ? Math.max(1, Math.round((view.x1 - view.x0) / 100)) : 1;
    app.choose(app.moment + step * (app.across === "time" ? 1 : by));
  }
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const name = event.target.tagName;
    if (name === "SELECT" || name === "INPUT") return;
    const moves = event.key.length > 1 && event.key !== "Escape";
    /* Arrows, Home and End scroll the page unless the timeline has the focus. */
    if (moves && event.target !== app.timeline.node) return;
    const key = keys.find(([k]) => k === (event.key.length === 1 && event.key !== "N" ? event.key.toLowerCase() : event.key));
    if (!key) return;
    event.preventDefault();
    key[3](event);
  }

  function compare() {
    app.compare = app.compare === null ? app.moment : null;
    $("compare").setAttribute("aria-pressed", String(app.compare !== null));
    fill($("compare"), app.compare === null ? "Compare with this moment" : `Compared with event ${text.count(app.compare)}: stop`);
    momentStale = true;
    app.redraw();
  }

  function legend() {
    const {m, scheme, theme} = app, names = model.groupings[scheme.by];
    const entry = (c, words) => el("span", {}, panels.swatch(c), words);
    fill($("plot-legend"), 
      scheme.keys.slice(0, 6).map((k) => entry(scheme.of.get(k), names.name(m, k))),
      scheme.keys.length > 6 ? el("span", {}, `and ${text.plural(scheme.keys.length - 6, "more", "more")}`) : null,
      m.doc.lumped ? entry(theme.tiny, "small blocks, summed") : null, entry(theme.held, "reserved, not active"));
    fill($("map-legend"), el("span", {}, el("span", {class: "swatch stuck"}), "free, stuck beside blocks in use"),
      el("span", {}, el("span", {class: "swatch", style: `background:${colour.css(theme.free)}`}), "free, could go back to the driver"),
      el("span", {}, el("span", {class: "swatch waits"}), "waiting for another stream"));
  }

  function themeChanged() {
    restyle(app.scheme.by);
    app.redraw();
  }

  function wire() {
    const {m} = app, able = model.useful(m);
    fill($("colour"), able.map((by) => el("option", {value: by}, "by " + model.groupings[by].title.toLowerCase())));
    fill($("holders-by"), able.map((by) => el("button", {type: "button", "data-by": by, "aria-pressed": String(by === app.by), onclick: (event) => {
      app.by = by;
      for (const b of $("holders-by").children) b.setAttribute("aria-pressed", String(b === event.currentTarget));
      panels.holders(app);
    }}, model.groupings[by].title)));
    $("colour").addEventListener("change", (event) => app.colourBy(event.target.value));
    $("order").addEventListener("change", (event) => { app.order = event.target.value; app.timeline.rearrange(); });
    $("across").addEventListener("change", (event) => { app.across = event.target.value; app.timeline.across(); });
    const on = (id, run) => $(id).addEventListener("click", run);
    on("zoom-in", () => app.timeline.zoom(0.5));
    on("zoom-out", () => app.timeline.zoom(2));
    on("zoom-all", () => app.timeline.all());
    on("go-oom", () => app.choose(m.oom.entry));
    on("go-peak", () => app.choose(m.peak));
    on("go-first", () => app.choose(0));
    on("go-last", () => app.choose(m.entries));
    on("go-back", () => app.choose(app.moment - 1));
    on("go-on", () => app.choose(app.moment + 1));
    on("compare", compare);
    on("help-open", () => $("help").showModal());
    fill($("help-keys"), keys.filter((k) => k[1]).map(([, shown, words]) => [el("dt", {}, shown.split(" ").map((k) => [el("kbd", {}, k), " "])), el("dd", {}, words)]));
    $("go-oom").hidden = !m.oom;
    $("across").parentElement.hidden = !m.timed;
    $("map").hidden = !m.placed;
    document.addEventListener("keydown", press);
    document.addEventListener("scroll", () => { $("tip").hidden = true; }, {passive: true});
    let waiting = 0;
    addEventListener("resize", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { app.timeline.layout(); momentStale = true; }, 80);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
    $("theme").addEventListener("change", (event) => {
      if (event.target.value) document.documentElement.dataset.theme = event.target.value;
      else delete document.documentElement.dataset.theme;
      themeChanged();
    });
    /* Paper is white. */
    let kept = null;
    addEventListener("beforeprint", () => { kept = document.documentElement.dataset.theme || ""; document.documentElement.dataset.theme = "light"; themeChanged(); cancelAnimationFrame(frame); draw(); });
    addEventListener("afterprint", () => { if (kept) document.documentElement.dataset.theme = kept; else delete document.documentElement.dataset.theme; themeChanged(); });
  }

  app.start = () => {
    const doc = JSON.parse($("document").textContent), m = app.m = model.read(doc), able = model.useful(m);
    app.by = able.includes("stack") ? "stack" : able[0];
    app.moment = doc.explain.entry;
    document.title = `${doc.source.name}: granary report`;
    fill($("title"), doc.source.name);
    fill($("subtitle"), `${doc.source.kind}, device ${doc.source.device}: ${text.plural(m.entries, "event")}${m.timed ? ` in ${text.time(m.times[m.entries])}` : ""}; ` +
      `peak ${text.bytes(m.active[m.peak])} active, ${text.bytes(m.reserved.reduce((a, b) => Math.max(a, b), 0))} reserved`);
    restyle(app.by);
    app.timeline = timeline.make(app);
    app.map = m.placed ? map.make(app) : null;
    wire();
    panels.verdict(app);
    panels.whatif(app);
    panels.about(app);
    app.redraw();
  };
  return app;
})();
app.start();

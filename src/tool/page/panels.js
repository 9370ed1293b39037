/* Everything on the page that is made of words: the selected block, shares, holders, pins, what-if, events. */
const panels = (() => {
  const swatch = (c) => el("span", {class: "swatch", style: `background:${colour.css(c)}`});
  const number = (...words) => el("td", {class: "number"}, ...words);
  /* ">" marks a column of numbers, "" one of bars. */
  const head = (...names) => el("thead", {}, el("tr", {}, names.map((n) => n === "" ? el("td") :
    el("th", {scope: "col", class: n[0] === ">" ? "number" : null}, n.replace(">", "")))));
  const bar = (part, whole, c) => el("td", {class: "bar"}, el("span", {style: `width:${whole > 0 ? Math.max(0, 100 * part / whole) : 0}%;background:${colour.css(c)}`}));

  function when(m, e) {
    if (e === model.BEFORE) return "before the history";
    if (e >= m.entries) return "never";
    return `event ${text.count(e)}${m.timed ? `, at ${text.time(m.times[e])}` : ""}`;
  }

  function stack(m, s) {
    const frames = m.doc.stacks[s], own = m.doc.lines[s];
    if (frames.length === 0) return el("p", {class: "quiet"}, m.stacked ? "No stack was recorded for it." : "The file has no stacks.");
    return el("ol", {class: "stack"}, frames.map((f) => {
      const {name, file, line} = model.frame(m, f);
      return el("li", {class: f === own ? "own" : null, title: file},
        el("b", {}, name || "?"), " ", el("span", {}, file ? model.place(file.split(/(?:site|dist)-packages\//).pop(), line) : ""));
    }));
  }

  /* A block in words, for the tip and for the panel beside the timeline. */
  function facts(m, i, e) {
    const waits = m.request[i] < e && e <= m.end[i];
    const life = m.timed && m.begin[i] >= 0 && m.end[i] < m.entries ? ` (${text.time(m.times[m.end[i]] - m.times[m.begin[i]])})` : "";
    const rows = [
      ["Allocated", when(m, m.begin[i])],
      ["Freed", when(m, m.end[i]) + life],
    ];
    if (waits) rows.push(["Waits", `its free was requested ${m.request[i] === model.BEFORE ? "before the history" : "at " + when(m, m.request[i])}; another stream still uses it`]);
    if (m.asked[i] !== m.size[i]) rows.push(["Asked for", `${text.count(m.asked[i])} bytes`]);
    if (m.placed) rows.push(["Address", text.address(m.address[i])]);
    if (m.doc.streams.length > 1) rows.push(["Stream", m.doc.streams[m.stream[i]]]);
    if (m.doc.pools.length > 1) rows.push(["Pool", m.doc.pools[m.pool[i]]]);
    if (m.doc.tags[m.tag[i]]) rows.push(["Tag", m.doc.tags[m.tag[i]]]);
    return rows;
  }

  function tip(m, i, e) {
    const frames = m.doc.stacks[m.stack[i]];
    const shown = frames.length > 14 ? [...frames.slice(0, 13)] : frames;
    return [
      el("p", {}, el("strong", {}, text.bytes(m.size[i])), " ", m.names[m.stack[i]]),
      el("p", {class: "quiet"}, `${m.begin[i] === model.BEFORE ? "from before the history" : `from event ${text.count(m.begin[i])}`} to ` +
        `${m.end[i] >= m.entries ? "the end" : `event ${text.count(m.end[i])}`}${m.request[i] < e ? "; waits for another stream" : ""}${m.doc.tags[m.tag[i]] ? `; ${m.doc.tags[m.tag[i]]}` : ""}`),
      el("ol", {class: "stack"}, shown.map((f) => {
        const {name, file, line} = model.frame(m, f);
        return el("li", {class: f === m.doc.lines[m.stack[i]] ? "own" : null}, el("b", {}, name || "?"), " ", file ? model.place(file.split("/").slice(-2).join("/"), line) : "");
      }), frames.length > shown.length ? el("li", {}, `and ${frames.length - shown.length} more`) : null),
    ];
  }

  function detail(app) {
    const {m} = app, box = $("detail"), i = app.selected, part = app.part;
    if (i < 0 && !part) {
      const list = model.holders(m, app.moment, app.scheme.by), names = model.groupings[app.scheme.by];
      const most = Math.max(1, ...list.map((g) => g.bytes));
      fill(box, el("h3", {}, "Most memory at this moment"),
        el("ol", {class: "top"}, list.slice(0, 9).map((g) => el("li", {},
          el("span", {class: "fill", style: `width:${100 * g.bytes / most}%;background:${colour.css(app.scheme.of.get(g.key))}`}),
          el("strong", {}, text.bytes(g.bytes)), " ",
          el("button", {type: "button", class: "link", onclick: () => app.light(app.only === g.key ? null : g.key)}, names.name(m, g.key))))),
        el("p", {class: "quiet"}, "Click a block to see its stack, or press the up and down keys on the timeline."));
      return;
    }
    const rows = [];
    if (i >= 0) rows.push(...facts(m, i, app.moment));
    else {
      rows.push(["Address", text.address(part.address)], ["State", "free"],
        ["To the driver", text.bytes(model.returnable(part)) + " of it could go back"],
        ["Segment", `${text.bytes(part.segment.size)}, ${text.bytes(part.segment.free)} free in ${text.plural(part.segment.parts.filter((p) => p.state === model.FREE).length, "piece")}`]);
    }
    const {of} = model.groupings[app.scheme.by], key = i >= 0 ? of(m, i) : null;
    fill(box,
      el("h3", {}, i >= 0 ? swatch(app.scheme.of.get(key)) : null, text.bytes(i >= 0 ? m.size[i] : part.size), i >= 0 ? "" : " free"),
      i >= 0 ? el("p", {class: "line"}, m.names[m.stack[i]]) : null,
      el("dl", {}, rows.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
      i >= 0 ? el("p", {class: "buttons"},
        el("button", {type: "button", onclick: () => app.choose(Math.min(m.entries, m.begin[i] + 1), i)}, "To its allocation"),
        m.end[i] < m.entries ? el("button", {type: "button", onclick: () => app.choose(m.end[i], i)}, "To its free") : null,
        el("button", {type: "button", onclick: () => app.timeline.frame(i)}, "Zoom to it"),
        el("button", {type: "button", "aria-pressed": String(app.only === key), onclick: () => app.light(app.only === key ? null : key)}, "Only its group")) : null,
      i >= 0 ? stack(m, m.stack[i]) : el("ul", {class: "plain"}, part.segment.parts.filter((p) => p.life >= 0).slice(0, 12).map((p) =>
        el("li", {}, el("button", {type: "button", class: "link", onclick: () => app.select(p.life)}, `${text.bytes(p.size)} ${m.names[m.stack[p.life]]}`)))));
  }

  /* What reserved memory is made of. */
  function shares(app) {
    const {m} = app, r = app.shares, t = app.theme;
    const list = [["in use", r.live, app.scheme.dark ? "#4c8fd6" : "#3d7fc4"]];
    list.push(["waiting for another stream", r.pending, "#b07cc6"]);
    if (m.placed) {
      list.push(["free, stuck beside blocks in use", r.stranded, "#d08a2e"]);
      list.push(["free, could go back to the driver", r.returnable, colour.css(t.free)]);
    } else list.push(["free", r.free, colour.css(t.free)]);
    const whole = list.reduce((sum, x) => sum + x[1], 0);
    const base = app.compare !== null && app.compare !== app.moment;
    const change = (now, series) => base ? ` (${text.signed(now - series[app.compare])})` : "";
    fill($("shares"),
      el("div", {class: "share", role: "img", "aria-label": list.map((x) => `${x[0]} ${text.bytes(x[1])}`).join(", ")},
        list.filter((x) => x[1] > 0).map((x) => el("span", {style: `flex-grow:${x[1]};background:${x[2]}`}))),
      el("ul", {class: "keys"},
        el("li", {}, el("strong", {}, text.bytes(r.reserved)), ` reserved${change(r.reserved, m.reserved)}`),
        el("li", {}, el("strong", {}, text.bytes(m.active[app.moment])), ` active${change(m.active[app.moment], m.active)}`),
        list.map((x) => el("li", {}, el("span", {class: "swatch", style: `background:${x[2]}`}), el("strong", {}, text.bytes(x[1])), ` ${x[0]}, ${text.percent(x[1], whole)}`))));
    const oom = m.ooms.find((k) => k.entry === app.moment);
    const span = m.spans.filter((s) => s.entry <= app.moment && app.moment <= s.to).map((s) => m.strings[s.name]);
    fill($("moment-text"),
      `Just before event ${text.count(app.moment)} of ${text.count(m.entries)}`,
      m.timed ? `, ${text.time(m.times[app.moment])} after the first` : "", span.length ? `, in ${span.join(", ")}` : "", ". ",
      oom ? el("strong", {class: "bad"}, `Here ${text.bytes(oom.size)} could not be had: ${r.fragments.length ? `the largest free piece is ${text.bytes(r.largest)}, ` : ""}` +
        `the driver had ${text.bytes(oom.free)} left on the device. `) : "",
      app.moment === m.peak ? "This is the peak of active memory. " : "",
      base ? `Compared with event ${text.count(app.compare)}.` : "");
  }

  const SHOWN = 14;
  function holders(app) {
    const {m, moment} = app, by = app.by, t = app.theme;
    const list = model.holders(m, moment, by), names = model.groupings[by];
    const base = app.compare !== null && app.compare !== moment, before = new Map();
    if (base) for (const g of model.holders(m, app.compare, by)) before.set(g.key, g);
    if (base) for (const [key, g] of before) if (!list.some((x) => x.key === key)) list.push({key, bytes: 0, pending: 0, blocks: 0, first: g.first});
    const grown = (g) => g.bytes - (before.get(g.key)?.bytes || 0);
    if (base) list.sort((a, b) => Math.abs(grown(b)) - Math.abs(grown(a)));
    const whole = list.reduce((sum, g) => sum + g.bytes, 0), most = Math.max(1, ...list.map((g) => g.bytes));
    const shown = app.allHolders ? list : list.slice(0, SHOWN);
    const same = by === app.scheme.by;
    fill($("holders-table"), el("table", {},
      head(names.title, ">Bytes", "", ">Share", ">Blocks", ...(base ? [">Change"] : [])),
      el("tbody", {}, shown.map((g) => {
        const c = same ? app.scheme.of.get(g.key) : t.active, on = same && app.only === g.key;
        const frames = by === "stack" ? m.doc.stacks[g.key] : null;
        return el("tr", {class: on ? "on" : null},
          el("th", {scope: "row"}, same ? swatch(c) : null,
            el("button", {type: "button", class: "link", "aria-pressed": String(on), title: "Show only these",
              onclick: () => { app.colourBy(by); app.light(app.only === g.key ? null : g.key); }}, names.name(m, g.key)),
            frames && frames.length ? el("details", {ontoggle: (event) => {
              if (event.target.open && event.target.children.length === 1) event.target.append(stack(m, g.key));
            }}, el("summary", {}, text.plural(frames.length, "frame"))) : null),
          number(text.bytes(g.bytes), g.pending ? el("span", {class: "quiet"}, ` (${text.bytes(g.pending)} waiting)`) : null),
          bar(g.bytes, most, c), number(text.percent(g.bytes, whole)), number(text.count(g.blocks)),
          base ? number(text.signed(grown(g))) : null);
      }))),
      m.lumped[moment] > 0 ? el("p", {class: "quiet"}, `Not in the table: ${text.bytes(m.lumped[moment])} in blocks that are too small and too many to be listed one by one.`) : null,
      list.length > SHOWN ? el("p", {}, el("button", {type: "button", onclick: () => { app.allHolders = !app.allHolders; holders(app); }},
        app.allHolders ? "Show fewer" : `Show all ${text.count(list.length)}`)) : null);
  }

  function pins(app) {
    const {m} = app, r = app.shares, list = model.pins(m, app.segments), wish = m.ooms.find((k) => k.entry === app.moment);
    const most = Math.max(1, ...list.map((g) => g.pinned));
    $("pins").hidden = !m.placed;
    if (!m.placed) return;
    fill($("pins-table"), list.length === 0 ? el("p", {}, "Nothing: no free memory is stuck beside blocks in use.") :
      el("table", {}, el("caption", {}, "Free memory that cannot go back to the driver, by the blocks in the same segments"),
        head("Held by", ">Stuck with it", "", ">With it alone", ">Segments", ">Its own blocks"),
        el("tbody", {}, list.slice(0, 10).map((g) => el("tr", {},
          el("th", {scope: "row"}, el("button", {type: "button", class: "link", onclick: () => app.select(g.first)}, g.name)),
          number(text.bytes(g.pinned)), bar(g.pinned, most, app.theme.stuck), number(text.bytes(g.alone)), number(text.count(g.segments)),
          number(`${text.count(g.blocks)}, ${text.bytes(g.bytes)}`))))));
    const bins = new Map();
    for (const p of r.fragments) {
      const k = Math.floor(Math.log2(p.size)), b = bins.get(k) || {count: 0, bytes: 0};
      b.count++;
      b.bytes += p.size;
      bins.set(k, b);
    }
    const rows = [...bins].sort((a, b) => b[0] - a[0]).slice(0, 12), top = Math.max(1, ...rows.map((b) => b[1].bytes));
    fill($("fragments"), rows.length === 0 ? null : el("table", {},
      el("caption", {}, wish ? `Free pieces by size. ${r.fragments.some((p) => p.size >= wish.size) ? "Some are" : "None is"} as large as the ${text.bytes(wish.size)} that was asked for.` : "Free pieces by size"),
      head("From", ">Pieces", ">Together", ""),
      el("tbody", {}, rows.map(([k, b]) => el("tr", {}, el("th", {scope: "row"}, text.tick(2 ** k)), number(text.count(b.count)), number(text.bytes(b.bytes)),
        bar(b.bytes, top, app.theme.stuck))))));
  }

  const words = {
    [model.ALLOC]: "alloc", [model.REQUEST]: "free requested", [model.COMPLETE]: "free", [model.MAP]: "segment grew", [model.UNMAP]: "segment given back", [model.OOM]: "out of memory",
  };
  function event(m, e) {
    const kind = m.kind[e], k = m.ref[e];
    if (kind === model.MAP || kind === model.UNMAP) return {size: m.changes[8 * k + 3], stack: m.changes[8 * k + 7], life: -1};
    if (kind === model.OOM) return {size: m.ooms[k].size, stack: m.ooms[k].stack, life: -1};
    if (kind === 0) return {size: 0, stack: 0, life: -1};
    return {size: m.size[k], stack: m.stack[k], life: k};
  }
  function events(app) {
    const {m, moment} = app, from = Math.max(0, moment - 8), to = Math.min(m.entries, from + 17), rows = [];
    for (let e = from; e < to; e++) {
      const {size, stack: s, life} = event(m, e), kind = m.kind[e];
      rows.push(el("tr", {class: `${e === moment ? "on" : ""} ${kind === model.OOM ? "bad" : ""}`, "aria-current": e === moment ? "true" : null},
        el("th", {scope: "row", class: "number"}, el("button", {type: "button", class: "link", onclick: () => app.choose(e, life)}, text.count(e))),
        m.timed ? number(text.time(m.times[e])) : null, el("td", {}, words[kind] || (m.doc.lumped ? "a block of the sum" : "other")), number(size ? text.bytes(size) : ""),
        number(text.bytes(m.active[Math.min(e + 1, m.entries)])), number(text.bytes(m.reserved[Math.min(e + 1, m.entries)])),
        el("td", {}, m.stacked ? m.names[s] : life >= 0 ? `block ${text.count(life)}` : "")));
    }
    fill($("events-table"), el("table", {},
      head(">Event", ...(m.timed ? [">Time"] : []), "What", ">Size", ">Active after", ">Reserved after", "Where"), el("tbody", {}, rows)));
  }

  function whatif(app) {
    const list = app.m.doc.whatif, roles = {own: "as the job ran", without: "without what grows", best: "fits best"};
    $("whatif").hidden = list.length === 0;
    if (list.length === 0) return;
    const most = Math.max(...list.map((r) => r.reserved));
    fill($("whatif-table"), el("table", {},
      el("caption", {}, "The same traffic on granary, replayed on a simulated card: what it reserves when there is room, and the smallest card that it fits"),
      head("Settings", ">Reserves", "", ">Smallest card", "This card"),
      el("tbody", {}, list.map((r) => el("tr", {class: r.role === "best" ? "on" : null},
        el("th", {scope: "row"}, el("code", {}, r.conf.replaceAll(",", ", ")), roles[r.role] ? el("span", {class: "quiet"}, ` ${roles[r.role]}`) : null),
        number(text.bytes(r.reserved)), bar(r.reserved, most, app.theme.active), number(text.bytes(r.smallest)),
        el("td", {class: r.fits.includes("fits") ? "good" : r.fits.includes("fails") ? "bad" : null}, r.fits === "-" ? "not known" : r.fits))))));
  }

  /* The words of `granary explain`: a sentence, then rows of a label and what it says. */
  function verdict(app) {
    const v = app.m.doc.explain, lines = v.words.split("\n"), rows = [];
    for (const line of lines.slice(1)) {
      if (/^  the same traffic/.test(line)) break;
      if (/^  .{12}\S|^  .{12} +\S/.test(line)) rows.push([line.slice(2, 14).trim(), line.slice(14)]);
    }
    const advice = lines.findIndex((line) => line.startsWith("  advice"));
    const told = advice < 0 ? [] : lines.slice(advice).map((line) => line.slice(14)).filter((line) => line);
    fill($("verdict-title"), lines[0][0].toUpperCase() + lines[0].slice(1));
    $("verdict-title").className = v.failed ? "bad" : "";
    const short = rows.filter(([label]) => ["failed", "grows", "waiting", "caution"].includes(label));
    fill($("verdict-text"),
      told.map((words) => el("p", {class: "advice"}, words)),
      short.length ? el("dl", {}, short.map(([label, words]) => [el("dt", {}, label), el("dd", {}, words)])) : null,
      el("details", {}, el("summary", {}, "The whole diagnosis"),
        el("dl", {class: "words"}, rows.map(([label, words]) => [el("dt", {}, label), el("dd", {}, words)]))));
  }

  function about(app) {
    const {doc} = app.m, s = doc.source, rows = [
      ["File", s.name], ["What it is", s.kind], ["Device", `${s.device}${s.devices.length > 1 ? ` (the file has devices ${s.devices.join(", ")})` : ""}`],
      ["Events", text.count(s.entries)], ["Blocks", text.count(doc.lives.count)], ["Stacks", text.count(doc.stacks.length - 1)],
    ];
    if (s.unexplained) rows.push(["Contradictions", `${text.count(s.unexplained)} events do not fit what came before them`]);
    if (s.dropped) rows.push(["Lost", `${text.count(s.dropped)} events before the first were overwritten`]);
    if (doc.lumped) rows.push(["Summed", `${text.plural(doc.lumped.count, "block")} below ${text.bytes(doc.lumped.below)} are shown only as a sum; the segments show their memory as free`]);
    rows.push(...doc.settings, ["Made by", `granary ${doc.granary}`]);
    fill($("about-table"), el("table", {class: "facts"}, el("tbody", {}, rows.map(([k, v]) => el("tr", {}, el("th", {scope: "row"}, k), el("td", {}, v))))));
  }

  return {tip, detail, shares, holders, pins, events, whatif, verdict, about, swatch};
})();

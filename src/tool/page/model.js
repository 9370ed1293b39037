/* The document as typed arrays, and the questions that the page asks of it.
 *
 * A moment is a number from 0 to entries: memory as it was just before that entry. A life is a block from
 * its allocation to the completion of its free; it is there at moment m when begin < m <= end, and pending
 * when request < m too. A piece is a stretch of memory that the allocator held, with the same rule. */
const model = (() => {
  const NEVER = 0x7fffffff, BEFORE = -1;
  const MIB = 1048576, GRANULE = 2 * MIB, STEP = 512;
  const SMALL = 1, EXPANDABLE = 2; /* bits of a piece's flags */
  const LIVE = 0, PENDING = 1, FREE = 2; /* states of a part */
  /* Kinds of entry. */
  const ALLOC = 1, REQUEST = 2, COMPLETE = 3, MAP = 4, UNMAP = 5, OOM = 6;

  /* A column is one number for all rows, or a number for each. */
  function column(Type, values, length) {
    if (typeof values === "number") return new Type(length).fill(values);
    return Type.from(values);
  }

  function readLives(m, d) {
    const n = d.count, size = column(Float64Array, d.size, n);
    m.lives = n;
    m.begin = column(Int32Array, d.begin, n);
    m.request = column(Int32Array, d.request, n);
    m.end = column(Int32Array, d.end, n);
    m.address = column(Float64Array, d.address, n);
    for (let i = 0, b = 0, a = 0; i < n; i++) {
      m.begin[i] = b += m.begin[i];
      m.address[i] = (a += m.address[i]) * d.unit;
      const request = m.request[i], end = m.end[i];
      m.request[i] = request === 0 ? NEVER : request < 0 ? BEFORE : b + request;
      if (end === 0) m.end[i] = NEVER;
      else m.end[i] = (m.request[i] === NEVER ? b : m.request[i]) + end;
      if (m.request[i] === NEVER) m.request[i] = m.end[i];
    }
    m.asked = size;
    m.size = size.map((s) => Math.max(STEP, Math.ceil(s / STEP) * STEP));
    for (const name of ["stack", "stream", "pool", "tag"]) m[name] = column(Int32Array, d[name], n);
  }

  function readTimes(m, d) {
    const {stride, steps} = d;
    m.times = new Float64Array(m.entries + 1);
    m.timed = steps.length > 0;
    if (!m.timed) { for (let i = 0; i <= m.entries; i++) m.times[i] = i; return; }
    /* steps[k] leads to the time of entry k * stride; between them time is taken to flow evenly. */
    for (let i = 0, t = 0; i <= m.entries; i++) {
      const k = Math.floor(i / stride), part = (i % stride) / stride;
      if (i % stride === 0 && k < steps.length) t += steps[k];
      m.times[i] = t + (k + 1 < steps.length ? part * steps[k + 1] : 0);
    }
  }

  /* Memory that came and went becomes pieces. What goes may be a part of what came. */
  function readPieces(m, d) {
    const pieces = [], open = new Map(); /* open: by address */
    const add = (address, size, stream, pool, flags, stack, begin) => {
      const piece = {address, size, stream, pool, flags, stack, begin, end: NEVER};
      pieces.push(piece);
      open.set(address, piece);
    };
    for (let i = 0; i < d.initial.length; i += 6) add(...d.initial.slice(i, i + 6), BEFORE);
    for (let i = 0; i < d.changes.length; i += 8) {
      const [entry, came, address, size, stream, pool, flags, stack] = d.changes.slice(i, i + 8);
      m.kind[entry] = came ? MAP : UNMAP;
      m.ref[entry] = i / 8;
      if (came) { add(address, size, stream, pool, flags, stack, entry); continue; }
      const exact = open.get(address);
      const hit = exact && exact.size === size ? [exact] :
        [...open.values()].filter((p) => p.address < address + size && p.address + p.size > address);
      for (const p of hit) {
        const top = p.address + p.size, cut = address + size;
        open.delete(p.address);
        p.end = entry;
        const rest = (from, to) => {
          p.size -= to - from;
          add(from, to - from, p.stream, p.pool, p.flags, p.stack, p.begin);
        };
        if (p.address < address) rest(p.address, address);
        if (top > cut) rest(cut, top);
        p.address = Math.max(p.address, address);
      }
    }
    m.pieces = pieces;
    m.changes = d.changes;
  }

  /* A curve of steps: size[k] holds from its entry to the next. */
  function curve({entry, size}, out) {
    for (let k = 0, e = 0; k < entry.length; k++) {
      e += entry[k];
      out.fill(size[k], e, k + 1 < entry.length ? e + entry[k + 1] : out.length);
    }
  }

  /* Bytes at every moment. */
  function sum(m, doc) {
    const n = m.entries, active = new Float64Array(n + 2), pending = new Float64Array(n + 2);
    const reserved = new Float64Array(n + 2);
    const step = (series, from, to, size) => {
      series[from + 1] += size;
      if (to < n) series[to + 1] -= size;
    };
    for (let i = 0; i < m.lives; i++) {
      step(active, m.begin[i], m.end[i], m.size[i]);
      if (m.request[i] < n) step(pending, m.request[i], m.end[i], m.size[i]);
    }
    m.lumped = new Float64Array(n + 1);
    if (doc.lumped) curve(doc.lumped, m.lumped);
    for (const p of m.pieces) step(reserved, p.begin, p.end, p.size);
    for (let e = 1; e <= n; e++) {
      active[e] += active[e - 1];
      pending[e] += pending[e - 1];
      reserved[e] += reserved[e - 1];
    }
    for (let e = 0; e <= n; e++) active[e] += m.lumped[e];
    m.active = active.subarray(0, n + 1);
    m.pending = pending.subarray(0, n + 1);
    m.reserved = reserved.subarray(0, n + 1);
    if (doc.reserved) curve(doc.reserved, m.reserved);
    m.peak = 0;
    for (let e = 0; e <= n; e++) if (m.active[e] > m.active[m.peak]) m.peak = e;
    m.top = 0;
    for (let e = 0; e <= n; e++) m.top = Math.max(m.top, m.active[e], m.reserved[e]);
  }

  function read(doc) {
    const m = {doc, entries: doc.source.entries, strings: doc.strings};
    m.kind = new Uint8Array(m.entries);
    m.ref = new Int32Array(m.entries);
    readLives(m, doc.lives);
    readTimes(m, doc.times);
    for (let i = 0; i < m.lives; i++) {
      const note = (entry, kind) => {
        if (entry >= 0 && entry < m.entries) { m.kind[entry] = kind; m.ref[entry] = i; }
      };
      if (m.request[i] !== m.end[i]) note(m.request[i], REQUEST);
      note(m.end[i], COMPLETE);
      note(m.begin[i], ALLOC);
    }
    readPieces(m, doc.segments);
    m.ooms = doc.marks.filter((k) => k.kind === "oom");
    m.ooms.forEach((k, i) => { m.kind[k.entry] = OOM; m.ref[k.entry] = i; });
    m.spans = doc.marks.filter((k) => k.kind === "span");
    sum(m, doc);
    m.oom = m.ooms.length ? m.ooms[m.ooms.length - 1] : null;
    m.placed = m.pieces.length > 0; /* are there addresses? */
    m.stacked = doc.stacks.length > 1;
    m.names = doc.stacks.map((_, s) => stackName(m, s));
    return m;
  }

  /* ---- names ---- */

  const frame = (m, f) => ({
    name: m.strings[m.doc.frames[3 * f]], file: m.strings[m.doc.frames[3 * f + 1]], line: m.doc.frames[3 * f + 2],
  });
  const shortFile = (file) => file.split("/").slice(-2).join("/");
  const place = (file, line) => line > 0 ? `${file}:${line}` : file; /* a line that is not known is 0 */
  const frameName = (f) => f.file ? `${place(shortFile(f.file), f.line)} ${f.name}` : f.name || "unknown";

  /* A stack in few words: the line that its reader can change, and what it called in the end. */
  function stackName(m, stack) {
    const frames = m.doc.stacks[stack], own = m.doc.lines[stack];
    if (frames.length === 0) return "stack not recorded";
    const inner = frame(m, frames[0]);
    return frames[0] === own ? frameName(inner) : `${frameName(frame(m, own))} → ${inner.name} ${place(inner.file.split("/").pop(), inner.line)}`;
  }

  const groupings = {
    stack: {title: "Stack", of: (m, i) => m.stack[i], name: (m, k) => m.names[k]},
    line: {title: "Line", of: (m, i) => m.doc.stacks[m.stack[i]].length ? m.doc.lines[m.stack[i]] : -1,
           name: (m, k) => k < 0 ? "stack not recorded" : frameName(frame(m, k))},
    tag: {title: "Tag", of: (m, i) => m.tag[i], name: (m, k) => m.doc.tags[k] || "no tag"},
    stream: {title: "Stream", of: (m, i) => m.stream[i], name: (m, k) => "stream " + m.doc.streams[k]},
    pool: {title: "Pool", of: (m, i) => m.pool[i], name: (m, k) => "pool " + m.doc.pools[k]},
    size: {title: "Size", of: (m, i) => Math.ceil(Math.log2(m.size[i])),
           name: (m, k) => `${text.tick(2 ** (k - 1))} to ${text.tick(2 ** k)}`},
    life: {title: "Life", of: (m, i) => lifeClass(m, i), name: (m, k) => lifeNames[k]},
  };
  const lifeNames = ["never freed", "long: half of the history or more", "medium", "short: a hundredth or less"];
  function lifeClass(m, i) {
    if (m.end[i] === NEVER) return 0;
    const part = (m.end[i] - m.begin[i]) / m.entries;
    return part >= 0.5 ? 1 : part > 0.01 ? 2 : 3;
  }
  /* Groupings that tell anything apart. */
  const useful = (m) => Object.keys(groupings).filter((by) =>
    by === "stack" || by === "line" ? m.stacked : by === "tag" ? m.doc.tags.length > 1 :
    by === "stream" ? m.doc.streams.length > 1 : by === "pool" ? m.doc.pools.length > 1 : true);

  /* ---- a moment ---- */

  const alive = (m, i, e) => m.begin[i] < e && e <= m.end[i];

  /* Groups at a moment, largest first: [{key, bytes, pending, blocks, first}]. first is a life of it. */
  function holders(m, e, by) {
    const {of} = groupings[by], groups = new Map();
    for (let i = 0; i < m.lives && m.begin[i] < e; i++) {
      if (m.end[i] < e) continue;
      const key = of(m, i);
      let g = groups.get(key);
      if (!g) groups.set(key, g = {key, bytes: 0, pending: 0, blocks: 0, first: i});
      g.bytes += m.size[i];
      g.blocks++;
      if (m.request[i] < e) g.pending += m.size[i];
    }
    return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
  }

  /* Segments at a moment, in rising order, each with its parts. A part is a block or free memory. What
   * is left behind a block and is too small to be split off belongs to the block. */
  function segments(m, e) {
    const out = [];
    const pieces = m.pieces.filter((p) => p.begin < e && e <= p.end).sort((a, b) => a.address - b.address);
    for (const p of pieces) {
      const last = out[out.length - 1];
      if (last && p.flags & EXPANDABLE && last.flags === p.flags && last.stream === p.stream &&
          last.pool === p.pool && last.address + last.size === p.address) last.size += p.size;
      else out.push({...p, parts: [], live: 0, pending: 0, free: 0, largest: 0});
    }
    const there = [];
    for (let i = 0; i < m.lives && m.begin[i] < e; i++) if (e <= m.end[i]) there.push(i);
    there.sort((a, b) => m.address[a] - m.address[b]);
    let k = 0;
    for (const s of out) {
      const top = s.address + s.size, rest = s.flags & EXPANDABLE || s.flags & SMALL ? STEP - 1 : MIB;
      let at = s.address;
      const gap = (to) => {
        if (to <= at) return;
        const last = s.parts[s.parts.length - 1];
        if (last && to - at <= rest) { last.size += to - at; s[last.state === LIVE ? "live" : "pending"] += to - at; }
        else {
          s.parts.push({address: at, size: to - at, life: -1, state: FREE, segment: s});
          s.free += to - at;
          s.largest = Math.max(s.largest, to - at);
        }
        at = to;
      };
      while (k < there.length && m.address[there[k]] < s.address) k++;
      for (; k < there.length && m.address[there[k]] < top; k++) {
        const i = there[k], size = Math.min(m.size[i], top - m.address[i]);
        gap(m.address[i]);
        const state = m.request[i] < e ? PENDING : LIVE;
        s.parts.push({address: m.address[i], size, life: i, state, segment: s});
        s[state === LIVE ? "live" : "pending"] += size;
        at = Math.max(at, m.address[i] + size);
      }
      gap(top);
    }
    return out;
  }

  /* What of a free part can go back to the driver: all of it when nothing else is in its segment, whole
   * granules of it in an expandable segment, else nothing. */
  function returnable(part) {
    const s = part.segment;
    if (s.parts.length === 1) return part.size;
    if (!(s.flags & EXPANDABLE)) return 0;
    const from = Math.ceil((part.address - s.address) / GRANULE), to = Math.floor((part.address - s.address + part.size) / GRANULE);
    return Math.max(0, to - from) * GRANULE;
  }

  /* Sums over the segments of a moment. stranded: free memory that cannot go back to the driver. */
  function shares(m, e, segs) {
    const r = {live: m.active[e] - m.pending[e], pending: m.pending[e], free: 0, returnable: 0, largest: 0,
               fragments: [], reserved: m.reserved[e]};
    if (m.placed) r.live = r.pending = 0;
    for (const s of segs) {
      r.live += s.live;
      r.pending += s.pending;
      for (const p of s.parts) {
        if (p.state !== FREE) continue;
        r.free += p.size;
        r.returnable += returnable(p);
        r.largest = Math.max(r.largest, p.size);
        r.fragments.push(p);
      }
    }
    r.stranded = r.free - r.returnable;
    if (!m.placed) r.free = Math.max(0, r.reserved - m.active[e]);
    return r;
  }

  /* Stacks whose blocks hold segments that are partly free: [{key, pinned, alone, bytes, blocks, first}].
   * pinned: stranded bytes of segments they are in; alone: of those where nothing else is. */
  function pins(m, segs) {
    const by = groupings[m.stacked ? "stack" : "size"], groups = new Map();
    for (const s of segs) {
      let stranded = 0;
      for (const p of s.parts) if (p.state === FREE) stranded += p.size - returnable(p);
      if (stranded === 0) continue;
      const here = new Map();
      for (const p of s.parts) {
        if (p.state === FREE) continue;
        const key = by.of(m, p.life);
        let h = here.get(key);
        if (!h) here.set(key, h = {bytes: 0, blocks: 0, first: p.life});
        h.bytes += p.size;
        h.blocks++;
      }
      for (const [key, h] of here) {
        let g = groups.get(key);
        if (!g) groups.set(key, g = {key, name: by.name(m, key), pinned: 0, alone: 0, segments: 0, bytes: 0, blocks: 0, first: h.first});
        g.pinned += stranded;
        if (here.size === 1) g.alone += stranded;
        g.segments++;
        g.bytes += h.bytes;
        g.blocks += h.blocks;
      }
    }
    return [...groups.values()].sort((a, b) => b.alone - a.alone || b.pinned - a.pinned);
  }

  return {NEVER, BEFORE, SMALL, EXPANDABLE, LIVE, PENDING, FREE, ALLOC, REQUEST, COMPLETE, MAP, UNMAP, OOM,
          read, frame, frameName, place, groupings, useful, alive, holders, segments, shares, pins, returnable};
})();

/* The stacked allocations, painted pixel by pixel.
 *
 * A frame walks the events of the view once, with the blocks that are there in a linked list. Each column
 * of pixels shows one moment, the one of its events that has most active memory, so no peak is lost when
 * many events share a column. The result is a buffer of what each pixel shows (marks), which answers what
 * the pointer is over, and from which the picture is coloured; lighting something up only colours again.
 * Blocks lower than half a pixel are summed in a band for each colour, on top, so a column costs at most a
 * few times its height, however many blocks there are. */
const layer = (() => {
  const NOTHING = 0, LUMPED = 1, HELD = 2, FIRST = 3; /* marks; FIRST + i: life i; FIRST + lives + k: band of group k */
  const WAITS = 1 << 30, EDGE = 1 << 29, MARK = EDGE - 1;

  function make(m) {
    let width = 0, height = 0, marks = new Int32Array(0), image = null, moments = new Int32Array(0);
    const order = new Int32Array(m.lives), slot = new Int32Array(m.lives), group = new Int32Array(m.lives);
    let slots = 1, next, prev, floor; /* the list */
    let tiny, pile, ends; /* tiny: bytes of each group in blocks that are not drawn alone */
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");

    /* groupOf tells the group of a life, from 0 to groups - 1. apart: the stack is ordered by group and
     * then by age, else by age alone. */
    function rearrange(groups, groupOf, apart) {
      const start = new Int32Array(groups + 1);
      slots = apart ? groups : 1;
      for (let i = 0; i < m.lives; i++) {
        group[i] = groupOf(i);
        slot[i] = apart ? group[i] : 0;
        start[slot[i] + 1]++;
      }
      for (let k = 0; k < slots; k++) start[k + 1] += start[k];
      for (let i = 0; i < m.lives; i++) order[start[slot[i]]++] = i;
      next = new Int32Array(m.lives + slots + 1);
      prev = new Int32Array(m.lives + slots + 1);
      floor = new Float64Array(m.lives + slots + 1);
      tiny = new Float64Array(groups);
      pile = new Int32Array(m.lives + groups + 2);
      ends = new Float64Array(m.lives + groups + 2);
    }
    rearrange(1, () => 0, false);

    function resize(w, h) {
      if (w === width && h === height) return;
      width = canvas.width = Math.max(1, w);
      height = canvas.height = Math.max(1, h);
      marks = new Int32Array(width * height);
      moments = new Int32Array(width);
      image = context.createImageData(width, height);
    }

    /* bounds[c]: the first moment of column c; bounds[width]: the end. bottom: bytes at the lower edge.
     *
     * The list is a ring: head, lives of slot 0, its sentinel, lives of slot 1, its sentinel, ... A sentinel
     * stands for the bands of its slot. floor[i] is where node i began, in bytes, in the column before; a
     * column is drawn from the lowest node that changed, and below that it is a copy. */
    function draw(bounds, bottom, perPixel) {
      /* All in local variables, and no closures over those that change: this is the inner loop. */
      const base = m.lives, bands = FIRST + base, head = base + slots, least = perPixel * 0.5, scale = 1 / perPixel;
      const {begin, end, size, request, active, reserved, lumped, kind, ref} = m;
      const groups = tiny.length, one = slots === 1;
      let now = bounds[0], shown = -1;

      tiny.fill(0);
      for (let k = 0; k <= slots; k++) {
        next[base + k] = k === slots ? base : base + k + 1;
        prev[base + k] = k === 0 ? head : base + k - 1;
      }
      for (let k = 0; k < base; k++) {
        const i = order[k];
        if (begin[i] >= now || end[i] < now) continue;
        if (size[i] < least) tiny[group[i]] += size[i];
        else link(i, base + slot[i]);
      }

      for (let c = 0; c < width; c++) {
        const column = c * height, top = column + height;
        let best = bounds[c];
        for (let e = best + 1, to = bounds[c + 1]; e < to; e++) if (active[e] > active[best]) best = e;
        moments[c] = best;
        if (c > 0) marks.copyWithin(column, column - height, column);
        if (best === shown) continue;

        /* The events on the way. start: the lowest node that changed, lowest: where it began. */
        let start = head, lowest = Infinity;
        for (; now < best; now++) {
          const what = kind[now], i = ref[now];
          let at = i, from = i; /* the node whose place changed, and the one to draw from */
          if (what === model.ALLOC || what === model.COMPLETE) {
            const s = base + slot[i];
            if (size[i] < least) {
              tiny[group[i]] += what === model.ALLOC ? size[i] : -size[i];
              at = from = s;
            } else if (what === model.ALLOC) {
              link(i, s);
              floor[i] = floor[s];
              if (start === s) start = i;
            } else {
              from = next[i];
              prev[from] = prev[i];
              next[prev[i]] = from;
              if (start === i) start = from;
            }
          } else if (what !== model.REQUEST || size[i] < least) continue;
          if (floor[at] < lowest) { lowest = floor[at]; start = from; }
        }
        if (shown < 0) { start = next[head]; lowest = 0; }
        else if (start === head) lowest = floor[head];
        shown = best;

        /* What lies above each other, and where each of it ends. */
        let sum = lowest, n = 0;
        for (let i = start; i !== head; i = next[i]) {
          floor[i] = sum;
          if (i < base) {
            pile[n] = request[i] < best ? FIRST + i | WAITS : FIRST + i;
            ends[n++] = sum += size[i];
            continue;
          }
          for (let k = one ? 0 : i - base, to = one ? groups : k + 1; k < to; k++) {
            if (tiny[k] <= 0) continue;
            pile[n] = bands + k;
            ends[n++] = sum += tiny[k];
          }
        }
        floor[head] = sum;
        if (lumped[best] > 0) { pile[n] = LUMPED; ends[n++] = sum += lumped[best]; }
        if (reserved[best] > active[best]) { pile[n] = HELD; ends[n++] = sum += reserved[best] - active[best]; }

        let row = Math.min(height, Math.max(0, Math.round((lowest - bottom) * scale)));
        for (let k = 0; k < n && row < height; k++) {
          const to = Math.min(height, Math.round((ends[k] - bottom) * scale));
          if (to <= row) continue;
          const mark = pile[k];
          for (let y = top - to; y < top - row; y++) marks[y] = mark;
          if (to - row > 3) marks[top - to] = mark | EDGE;
          row = to;
        }
        for (let y = column; y < top - row; y++) marks[y] = NOTHING;
      }
    }

    /* Puts a life at the end of the slot that sentinel s ends. */
    function link(i, s) {
      const p = prev[s];
      next[p] = i;
      prev[i] = p;
      next[i] = s;
      prev[s] = i;
    }

    /* Colours columns from to to. look: {lut: a colour for each mark, hatch, edge: what is mixed in,
     * crisp: whether blocks have upright edges} */
    function paint(look, from, to) {
      const {lut, hatch, edge, crisp} = look, out = new Uint32Array(image.data.buffer);
      const mix = (a, b) => ((a & 0xfefefe) >>> 1) + ((b & 0xfefefe) >>> 1) | 0xff000000;
      for (let x0 = from; x0 < to; x0 += 16) { /* narrow strips: both arrays stay in the cache */
        const x1 = Math.min(to, x0 + 16);
        for (let y = 0; y < height; y++) {
          for (let x = x0, at = x * height + y, k = y * width + x; x < x1; x++, at += height, k++) {
            const v = marks[at];
            if (v === NOTHING) { out[k] = 0; continue; }
            const mark = v & MARK;
            let c = lut[mark];
            if (v !== mark || mark === HELD || crisp) {
              if (v & WAITS && (x + y) % 6 < 2 || mark === HELD && (x - y & 7) === 0) c = mix(c, hatch);
              if (v & EDGE || crisp && x > 0 && mark >= FIRST && (marks[at - height] & MARK) !== mark) c = mix(c, edge);
            }
            out[k] = c;
          }
        }
      }
      context.putImageData(image, 0, 0, from, 0, to - from, height);
    }

    /* The columns that show a life, as [from, to). */
    function columns(i) {
      const first = (e) => { /* column whose moment is e or later; moments rise */
        let lo = 0, hi = width;
        while (lo < hi) { const mid = lo + hi >> 1; if (moments[mid] < e) lo = mid + 1; else hi = mid; }
        return lo;
      };
      return [first(m.begin[i] + 1), Math.min(width, first(m.end[i] + 1) + 1)];
    }

    return {
      canvas, resize, draw, paint, rearrange, columns,
      markAt: (x, y) => x >= 0 && y >= 0 && x < width && y < height ? marks[x * height + y] & MARK : NOTHING,
      momentAt: (x) => moments[Math.min(width - 1, Math.max(0, x))],
      get width() { return width; }, get height() { return height; },
    };
  }

  return {NOTHING, LUMPED, HELD, FIRST, make};
})();

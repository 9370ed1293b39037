// SPDX-License-Identifier: Apache-2.0
// Snapshots to look at: made here, the same each time.

/* Small numbers that look random. */
function random(seed) {
  let s = seed >>> 0;
  return () => (s = (Math.imul(s, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

const frame = (name, filename, line) => ({name, filename, line});
const settings = {PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True", expandable_segments: true, max_split_size: -1};

/* Training-like traffic: events entries, up to some 2,500 blocks at once, 200 stacks of 20 frames. */
export function training(events) {
  const r = random(7), frames = [], stacks = [], sizes = [], trace = [], live = [];
  for (let i = 0; i < 300; i++)
    frames.push(frame(`forward_${i}`, i % 4 === 0 ? "train/model.py" : `lib/python3/site-packages/nn/m${i}.py`, 1 + Math.floor(r() * 900)));
  for (let i = 0; i < 200; i++) stacks.push(Array.from({length: 20}, () => frames[Math.floor(r() * 300)]));
  for (let i = 0; i < 400; i++) sizes.push(i < 300 ? 512 * 2 ** Math.floor(r() * 17) : (1 + Math.floor(r() * 63)) * 2 ** 20);
  const base = 2 ** 40, bins = new Map();
  let top = base, time = 1e15;
  const entry = (action, b) => trace.push({action, addr: b.address, size: b.size, stream: 0, time_us: time += 1 + Math.floor(r() * 30), frames: b.stack});
  trace.push(null); /* the segment, once its size is known */
  while (trace.length < events) {
    const filling = live.length < 300 || (Math.floor(trace.length / 5000) % 2 === 0 && live.length < 2500);
    if (filling || r() < 0.45) {
      const k = Math.floor(r() * 200), size = sizes[(k * 7 + Math.floor(r() * 3)) % 400], bin = bins.get(size);
      const b = {size, stack: k, address: bin && bin.length ? bin.pop() : top};
      if (b.address === top) top += size;
      entry("alloc", b);
      live.push(b);
    } else {
      const [b] = live.splice(Math.max(0, live.length - 1 - Math.floor(-200 * Math.log(1 - r()))), 1);
      entry("free_requested", b);
      entry("free_completed", b);
      if (!bins.has(b.size)) bins.set(b.size, []);
      bins.get(b.size).push(b.address);
    }
  }
  const size = Math.ceil((top - base) / (20 * 2 ** 20)) * 20 * 2 ** 20, blocks = [];
  trace[0] = {action: "segment_map", addr: base, size, stream: 0, time_us: 1e15, frames: 0};
  let at = base;
  const gap = (to) => { if (to > at) blocks.push({address: at, size: to - at, requested_size: 0, state: "inactive", frames: null}); };
  for (const b of live.sort((a, c) => a.address - c.address)) {
    gap(b.address);
    blocks.push({address: b.address, size: b.size, requested_size: b.size, state: "active_allocated", frames: b.stack});
    at = b.address + b.size;
  }
  gap(base + size);
  return {
    segments: [{device: 0, address: base, total_size: size, stream: 0, segment_type: "large", segment_pool_id: [0, 0], is_expandable: true, frames: 0, blocks}],
    device_traces: [trace], stacks, allocator_settings: settings, external_annotations: [],
  };
}

/* Everything that can be told of, in few events; names that try to be markup. */
export function hostile() {
  const evil = "</script><img src=x onerror=\"window.hurt=1\"><script>window.hurt=2</script>", M = 2 ** 20;
  const where = [frame(evil, "train.py", 3), frame("main", "<b>train.py</b>", 9)];
  let time = 1000;
  const e = (action, addr, size, more = {}) => ({action, addr, size, stream: 0, time_us: time += 10, frames: where, ...more});
  return {
    segments: [{
      device: 0, address: 64 * M, total_size: 20 * M, stream: 0, segment_type: "large", segment_pool_id: [0, 0], is_expandable: false, frames: [],
      blocks: [{address: 64 * M, size: 8 * M, requested_size: 8 * M, state: "active_allocated", frames: where},
               {address: 72 * M, size: 12 * M, requested_size: 0, state: "inactive", frames: []}],
    }],
    device_traces: [[
      e("segment_alloc", 64 * M, 20 * M), e("alloc", 64 * M, 8 * M, {user_metadata: evil}), e("alloc", 72 * M, 4 * M), e("alloc", 76 * M, 8 * M, {stream: 0}),
      e("free_requested", 72 * M, 4 * M), e("free_completed", 72 * M, 4 * M), e("free_requested", 76 * M, 8 * M),
      {action: "oom", device_free: 5 * M, size: 100 * M, stream: 0, time_us: time += 10, frames: where},
      e("free_completed", 76 * M, 8 * M),
    ]],
    allocator_settings: {...settings, PYTORCH_CUDA_ALLOC_CONF: evil},
    external_annotations: [{stage: "START", name: evil, device: 0, time_us: 1010}, {stage: "END", name: evil, device: 0, time_us: 1060}],
  };
}

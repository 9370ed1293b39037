#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens our snapshots with PyTorch's own tools, and measures what Python frames cost.

memory_viz.py DIRECTORY LIBRARY [--sim] [--quick]

DIRECTORY is what test/gpu/history wrote, LIBRARY is libgranary.so. Fails when a snapshot cannot be opened, lacks
a key, or is not what the tools expect. What the machine lacks (PyTorch, node) is left out, with a line that says so.
"""
import collections
import ctypes
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time

SEGMENT = {'device': int, 'address': int, 'total_size': int, 'allocated_size': int, 'active_size': int,
           'requested_size': int, 'stream': int, 'segment_type': str, 'segment_pool_id': tuple,
           'is_expandable': bool, 'frames': list, 'blocks': list}
BLOCK = {'address': int, 'size': int, 'requested_size': int, 'state': str, 'frames': list}
ENTRY = {'action': str, 'size': int, 'stream': int, 'time_us': int, 'compile_context': str,
         'user_metadata': str, 'frames': list}
FRAME = {'name': str, 'filename': str, 'line': int}
SETTINGS = {'PYTORCH_CUDA_ALLOC_CONF': str, 'max_split_size': int, 'garbage_collection_threshold': float,
            'expandable_segments': bool, 'pinned_num_register_threads': int, 'release_lock_on_cudamalloc': bool,
            'pinned_use_cuda_host_register': bool, 'graph_capture_record_stream_reuse': bool,
            'roundup_power2_divisions': dict}
ACTIONS = {'alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_free', 'segment_map',
           'segment_unmap', 'oom', 'snapshot', 'move'}


def expect(condition, *words):
    if not condition:
        sys.exit('memory_viz: ' + ' '.join(map(str, words)))


def has(thing, keys, what):
    for key, kind in keys.items():
        expect(key in thing, what, 'has no', key)
        expect(type(thing[key]) is kind, key, 'of', what, 'is a', type(thing[key]).__name__)


def check(data):
    """The schema, and sums that belong together."""
    totals = collections.Counter()
    for segment in data['segments']:
        has(segment, SEGMENT, 'a segment')
        at = segment['address']
        for block in segment['blocks']:
            has(block, BLOCK, 'a block')
            expect(block['address'] == at, 'blocks do not tile the segment at', hex(segment['address']))
            at += block['size']
            for frame in block['frames']:
                has(frame, FRAME, 'a frame')
        expect(at == segment['address'] + segment['total_size'], 'a segment is larger than its blocks')
        totals.update({key: segment[key] for key in ('total_size', 'allocated_size', 'active_size')})
    for entry in (e for trace in data['device_traces'] for e in trace):
        has(entry, ENTRY, 'an entry')
        expect(entry['action'] in ACTIONS, 'action', entry['action'])
        expect(('device_free' if entry['action'] == 'oom' else 'addr') in entry, 'an entry has no address')
    has(data['allocator_settings'], SETTINGS, 'allocator_settings')
    figures = data['granary']['statistics']
    for key, name in (('total_size', 'reserved_bytes'), ('allocated_size', 'allocated_bytes'),
                      ('active_size', 'active_bytes')):
        expect(totals[key] == figures[name]['all']['current'], key, totals[key], 'is not', name)


def replay(data):
    """Backward from the end, as the viewer does: every entry fits what comes after it."""
    live, mapped = {}, set()
    for segment in data['segments']:
        mapped.update(range(segment['address'], segment['address'] + segment['total_size'], 2 << 20))
        for block in segment['blocks']:
            if block['state'] != 'inactive':
                live[block['address']] = block['state'] == 'active_pending_free'
    for entry in reversed([e for trace in data['device_traces'] for e in trace]):
        action, addr = entry['action'], entry.get('addr')
        pieces = set(range(addr, addr + entry['size'], 2 << 20)) if action.startswith('segment_') else set()
        if action == 'free_completed':
            expect(addr not in live, 'a block was freed and is there', hex(addr))
            live[addr] = True
        elif action == 'free_requested':
            expect(live.get(addr) is True, 'a free was requested of', hex(addr))
            live[addr] = False
        elif action == 'alloc':
            expect(live.pop(addr, None) is False, 'an allocation is not there', hex(addr))
        elif action in ('segment_map', 'segment_alloc'):
            expect(pieces <= mapped, 'memory came and is not there', hex(addr))
            mapped -= pieces
        elif action in ('segment_unmap', 'segment_free'):
            expect(not pieces & mapped, 'memory went and is there', hex(addr))
            mapped |= pieces
    expect(not live and not mapped, 'the history does not begin with nothing')


def same_as_json(data, text):
    """The JSON of the same state, but for the entries that snapshots themselves added."""
    def differs(pickled, other, key=''):
        if key == 'frames':
            other = text['stacks'][other]
        if isinstance(pickled, dict):
            return any(differs(v, other[k], k) for k, v in pickled.items() if k != 'time_error_us')
        if isinstance(pickled, (list, tuple)):
            return any(differs(a, b) for a, b in zip(pickled, other)) or len(pickled) > len(other)
        return pickled != other and key not in ('time_us', 'kept', 'recorded')
    expect(not differs(data, text), 'the JSON says something else')


def with_pytorch(directory, names):
    try:
        import torch
        from torch.cuda import _memory_viz as viz
    except ImportError as missing:
        print('memory_viz: no PyTorch (%s): its tools are left out' % missing)
        return None
    plain = lambda lines: lines  # instead of flamegraph.pl, which it would download
    for name in names:
        with open(os.path.join(directory, name), 'rb') as file:
            data = pickle.load(file)
        html = viz.trace_plot(data)
        expect('snapshot.pickle' in html and len(html) > 1000, 'trace_plot of', name)
        expect(len(viz.trace_plot(data, plot_segments=True)) > 1000, 'trace_plot of segments of', name)
        expect(len(viz.segment_plot(data)) > 1000, 'segment_plot of', name)
        summary = viz.segsum(data)
        expect('segments: %d' % len(data['segments']) in summary, 'segsum of', name)
        expect('TOTAL MEM' in viz.trace(data), 'trace of', name)
        lines = viz.memory(data, format_flamegraph=plain).splitlines()
        held = sum(int(line.rsplit(' ', 1)[1]) for line in lines)
        expect(held == sum(s['total_size'] for s in data['segments']), 'memory of', name, 'shows', held)
        expect('seg_' in viz.segments(data, format_flamegraph=plain), 'segments of', name)
        print('%s: trace_plot, segment_plot, segsum, trace, memory, segments' % name)
    for kind in ('expandable', 'classic'):
        both = []
        for when in ('before', 'after'):
            with open(os.path.join(directory, '%s-%s.pickle' % (kind, when)), 'rb') as file:
                both.append(pickle.load(file)['segments'])
        viz.compare(both[0], both[1], format_flamegraph=plain)
        print('%s: compare' % kind)
    return torch


def with_node(torch, directory, names):
    """The unpickler of the page in the browser, cut out of PyTorch's own file, on our file."""
    viewer = torch and os.path.join(os.path.dirname(torch.__file__), 'utils', 'viz', 'MemoryViz.js')
    if not viewer or not os.path.exists(viewer):
        print('memory_viz: this PyTorch has no MemoryViz.js: left out')
        return
    with open(viewer) as file:
        found = re.search(r'^function unpickle\(.*?^}', file.read(), re.S | re.M)
    expect(found, 'no function unpickle in', viewer)
    script = found.group(0) + '''
const fs = require('fs');
for (const name of process.argv.slice(2)) {
  const bytes = fs.readFileSync(name);
  const data = unpickle(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  console.log(JSON.stringify([data.segments.length, data.device_traces[0].length, data.segments[0].address]));
}'''
    with tempfile.NamedTemporaryFile('w', suffix='.js') as file:
        file.write(script)
        file.flush()
        try:
            run = subprocess.run(['node', file.name] + [os.path.join(directory, n) for n in names],
                                 capture_output=True, text=True, check=True)
        except FileNotFoundError:
            print('memory_viz: no node: the unpickler of the page is left out')
            return
    for name, line in zip(names, run.stdout.splitlines()):
        with open(os.path.join(directory, name), 'rb') as opened:
            data = pickle.load(opened)
        right = [len(data['segments']), len(data['device_traces'][0]), data['segments'][0]['address']]
        expect(json.loads(line) == right, 'the page reads', line, 'from', name)
    print('MemoryViz.js: its unpickler reads', ', '.join(names))


def rows(table):
    """Names of rows and places of bars: what a script that reads the table goes by."""
    lines = [line for line in table.splitlines() if line.startswith('|')]
    return [(line[1:24].strip() if line.count('|') == 6 else '', [i for i, c in enumerate(line) if c == '|'])
            for line in lines]


def same_table(torch, directory):
    if not torch or not torch.cuda.is_available():
        print('memory_viz: no GPU for PyTorch: the table is left out')
        return
    theirs = rows(torch.cuda.memory_summary())
    for name in ('expandable.summary', 'classic.summary'):
        with open(os.path.join(directory, name)) as file:
            ours = rows(file.read())
        expect(ours[:len(theirs)] == theirs, name, 'has other rows than memory_summary')
    print('memory_summary: the same %d rows' % len(theirs))


class HistoryOptions(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_size_t), ('level', ctypes.c_int), ('stacks', ctypes.c_int),
                ('entries', ctypes.c_size_t)]


def python_frames(library, simulated, count):
    """What events cost with Python frames, called from Python at a depth of 16."""
    held, free = ctypes.PyDLL(library), ctypes.CDLL(library)
    options = (ctypes.c_char * 4096)()
    handle, block = ctypes.c_void_p(), ctypes.c_void_p()
    free.granary_options_init(options)
    if simulated:
        config = (ctypes.c_char * 4096)()
        free.granary_sim_config_init(config)
        expect(free.granary_sim_open(config) == 0, 'granary_sim_open')
        ctypes.cast(options, ctypes.POINTER(ctypes.c_int))[2] = 1
    status = free.granary_open(0, options, ctypes.byref(handle))
    expect(status == 0, 'granary_open:', status)
    history = HistoryOptions()
    free.granary_history_options_init(ctypes.byref(history))

    def measure(depth, lib, count):
        if depth > 0:
            return measure(depth - 1, lib, count)
        alloc, give = lib.granary_alloc, lib.granary_free
        alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        give.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        out = ctypes.byref(block)
        best = 1e18
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(count):
                alloc(handle, 1000, None, out)
                give(handle, block)
            best = min(best, (time.perf_counter_ns() - begin) / count)
        return best

    off_level, alloc_level, all_level, c_stacks, python_stacks = 0, 2, 3, 1, 2
    print('%-34s %14s %14s' % ('history, from Python', 'lock held', 'lock given up'))
    base = {}
    for name, level, stacks in (('off', off_level, 0), ('alloc, no stacks', alloc_level, 0),
                                ('alloc, C stacks', alloc_level, c_stacks),
                                ('alloc, Python stacks', alloc_level, python_stacks),
                                ('alloc, both', alloc_level, c_stacks | python_stacks),
                                ('all, Python stacks', all_level, python_stacks)):
        history.level, history.stacks, history.entries = level, stacks, 100000
        expect(free.granary_record_history(handle, ctypes.byref(history)) == 0, 'granary_record_history')
        cells = []
        for which, lib in (('held', held), ('free', free)):
            pair = measure(16, lib, count)
            base.setdefault(which, pair)
            cells.append('%8.0f (+%5.0f)' % (pair, pair - base[which]))
        print('%-34s %s %s   ns a pair' % (name, *cells))

    pieces = []
    writer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

    def take(_context, data, size):
        pieces.append(ctypes.string_at(data, size))
        return 0
    expect(free.granary_snapshot(handle, 0, writer(take), None) == 0, 'granary_snapshot')
    trace = pickle.loads(b''.join(pieces))['device_traces'][0]
    names = [f['name'] for f in trace[-2]['frames']]
    expect(names.count('measure') >= 17, 'the frames of Python are', names)
    places = {(f['filename'], f['line']) for f in trace[-2]['frames'] if f['name'] == 'measure'}
    expect(len(places) == 2 and all(p[0].endswith('memory_viz.py') for p in places), places)
    free.granary_close(handle)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith('--')]
    expect(len(arguments) == 2, 'usage: memory_viz.py DIRECTORY LIBRARY [--sim]')
    directory, library = arguments
    names = ['%s-%s.pickle' % (kind, when) for kind in ('expandable', 'classic')
             for when in ('before', 'after', 'oom')]
    for name in names:
        with open(os.path.join(directory, name), 'rb') as file:
            data = pickle.load(file)
        check(data)
        replay(data)
    for kind in ('expandable', 'classic'):
        with open(os.path.join(directory, kind + '-after.pickle'), 'rb') as file:
            data = pickle.load(file)
        with open(os.path.join(directory, kind + '.json'), encoding='utf-8') as file:
            same_as_json(data, json.load(file))
    print('memory_viz: %d pickles have the schema and replay to nothing' % len(names))
    torch = with_pytorch(directory, names)
    with_node(torch, directory, names)
    same_table(torch, directory)
    python_frames(library, '--sim' in sys.argv, 50 if '--quick' in sys.argv else 10000)


main()

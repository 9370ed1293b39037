# SPDX-License-Identifier: Apache-2.0
"""granary_torch.py on the simulated device, under a stand-in for the torch module.   check.py FOLDER_OF_THE_LIBRARY"""

import ctypes
import os
import pickle
import sys
import tempfile
import threading
import types
import unittest

FOLDER = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, FOLDER)


class Id(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


class Inner:
    """PyTorch's allocator object: remembers the addresses of functions and calls them as PyTorch does."""

    def __init__(self, alloc, free):
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(alloc)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(free)

    def set_record_stream_fn(self, f):
        self.record = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(f)

    def set_reset_fn(self, f):
        self.reset = ctypes.CFUNCTYPE(None)(f)

    def set_memory_fraction_fn(self, f):
        self.fraction = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(f)

    def set_begin_allocate_to_pool(self, f):
        self.begin = ctypes.CFUNCTYPE(None, ctypes.c_int, Id, ctypes.c_void_p)(f)

    def set_end_allocate_to_pool_fn(self, f):
        self.end = ctypes.CFUNCTYPE(None, ctypes.c_int, Id)(f)

    def set_release_pool(self, f):
        self.release = ctypes.CFUNCTYPE(None, ctypes.c_int, Id)(f)


class OldInner:
    def __init__(self, alloc, free):
        pass


def fake_torch(inner=Inner):
    """As much of torch as granary_torch.py touches."""
    torch = types.ModuleType("torch")
    torch.__version__ = "0.0"
    torch._C = types.SimpleNamespace(_cuda_customAllocator=inner)
    torch.device = lambda name: types.SimpleNamespace(index=int(name.split(":")[1]) if ":" in name else None)

    class Allocator:
        def __init__(self, path, alloc, free):
            library = ctypes.CDLL(path)
            address = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            self._allocator = torch._C._cuda_customAllocator(address(alloc), address(free))

    def change(allocator):
        torch.current = allocator._allocator

    class Graph:
        def capture_begin(self, pool=Id(0, 1), mode="global"):
            if mode == "broken":
                raise RuntimeError("no capture")
            torch.current.begin(0, pool, None)

        def capture_end(self):
            raise RuntimeError("it broke")  # before the allocator is told

    original = lambda *_: "torch's own"
    memory = types.SimpleNamespace(CUDAPluggableAllocator=Allocator, change_current_allocator=change,
                                   memory_stats=original, reset_peak_memory_stats=original, memory_summary=original)
    torch.cuda = types.SimpleNamespace(memory=memory, CUDAGraph=Graph, memory_stats=original,
                                       reset_peak_memory_stats=original, memory_summary=original,
                                       current_device=lambda: 0,
                                       current_stream=lambda: types.SimpleNamespace(cuda_stream=0))
    sys.modules["torch"] = torch
    return torch


class Sim(ctypes.Structure):
    """The head of struct granary_sim_config; the rest stays as granary_sim_config_init set it."""
    _fields_ = [("bytes", ctypes.c_char * 4096)]


class Case(unittest.TestCase):
    def setUp(self):
        import granary_torch

        self.g = granary_torch
        self.torch = fake_torch()
        self.sim = ctypes.CDLL(os.path.join(FOLDER, "libgranary_torch.so"))
        self.sim.granary_torch_handle.restype = ctypes.c_void_p
        config = Sim()
        self.sim.granary_sim_config_init(ctypes.byref(config))
        self.assertEqual(self.sim.granary_sim_open(ctypes.byref(config)), 0)

    def tearDown(self):
        self.g._close()
        self.assertEqual(self.sim.granary_sim_close(), 0, "something was left behind")

    def has_pool(self, handle, name):
        return self.sim.granary_pool_retain(handle, ctypes.c_uint64(name)) == 0

    def on(self, conf=""):
        self.g.enable(conf=conf, _simulated=True)
        return self.torch.current

    def test_memory_comes_from_granary_and_figures_say_so(self):
        inner = self.on()
        p = inner.alloc(3 << 20, 0, None)
        self.assertTrue(p)
        stats = self.torch.cuda.memory_stats()
        self.assertEqual(stats["allocated_bytes.all.current"], 3 << 20)
        self.assertEqual(self.torch.cuda.memory.memory_stats("cuda:0"), stats)
        inner.free(p, 3 << 20, 0, None)
        self.torch.cuda.reset_peak_memory_stats()
        self.assertEqual(self.g.memory_stats("cuda")["allocated_bytes.all.peak"], 0)
        self.assertGreater(self.g.memory_stats()["reserved_bytes.all.current"], 0)
        self.g.empty_cache()
        self.assertEqual(self.g.memory_stats()["reserved_bytes.all.current"], 0)
        self.assertIn("Moved memory", self.torch.cuda.memory_summary())  # a row of ours

    def test_a_capture_is_announced_with_its_stream_and_a_failed_one_is_forgotten(self):
        inner = self.on()
        stream = ctypes.c_void_p()
        handle = ctypes.c_void_p(self.sim.granary_torch_handle(0))
        self.assertEqual(self.sim.granary_stream_create(handle, ctypes.byref(stream)), 0)
        self.torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=stream.value)
        graph = self.torch.cuda.CUDAGraph()
        with self.assertRaises(RuntimeError):
            graph.capture_begin(mode="broken")
        inner.begin(0, Id(1, 0), None)  # the thread's own: were it taken for a capture, it would end on no thread
        p = inner.alloc(1000, 0, None)
        inner.end(0, Id(1, 0))
        inner.free(p, 1000, 0, None)
        inner.release(0, Id(1, 0))
        graph.capture_begin()
        thread = threading.Thread(target=inner.end, args=(0, Id(0, 1)))  # of the thread's own pools it could end none
        thread.start()
        thread.join()
        inner.release(0, Id(0, 1))
        self.assertEqual([n for n in range(1, 50) if self.has_pool(handle, n)], [])
        self.assertEqual(self.sim.granary_stream_destroy(handle, stream), 0)

    def test_a_capture_that_broke_does_not_keep_memory_from_being_given_back(self):
        inner = self.on()
        stream = ctypes.c_void_p()
        handle = ctypes.c_void_p(self.sim.granary_torch_handle(0))
        self.assertEqual(self.sim.granary_stream_create(handle, ctypes.byref(stream)), 0)
        self.torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=stream.value)
        graph = self.torch.cuda.CUDAGraph()
        graph.capture_begin()
        inner.free(inner.alloc(5 << 20, 0, None), 5 << 20, 0, None)
        self.g.empty_cache()
        self.assertGreater(self.g.memory_stats()["reserved_bytes.all.current"], 0)  # a capture is open
        with self.assertRaisesRegex(RuntimeError, "it broke"):
            graph.capture_end()
        self.g.empty_cache()
        self.assertEqual(self.g.memory_stats()["reserved_bytes.all.current"], 0)
        self.assertEqual([n for n in range(1, 50) if self.has_pool(handle, n)], [])
        self.assertEqual(self.sim.granary_stream_destroy(handle, stream), 0)

    def test_a_snapshot_tells_what_happened(self):
        inner = self.on()
        self.g.record_history("all", entries=1000)
        inner.free(inner.alloc(12345, 0, None), 12345, 0, None)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("s.pickle", "s.json"):
                self.g.snapshot(os.path.join(folder, name))
            with open(os.path.join(folder, "s.pickle"), "rb") as f:
                events = pickle.load(f)["device_traces"][0]
            with open(os.path.join(folder, "s.json")) as f:
                self.assertTrue(f.read().startswith("{"))
        self.assertIn(("alloc", 12345), [(e["action"], e["size"]) for e in events])
        with self.assertRaisesRegex(OSError, "no/such/place"):
            self.g.snapshot("no/such/place/s.pickle")
        with self.assertRaisesRegex(ValueError, "'loud'"):
            self.g.record_history("loud")

    def test_a_bad_option_is_named_and_nothing_changes(self):
        with self.assertRaisesRegex(ValueError, "perhaps"):
            self.on("reclaim:perhaps")
        self.assertEqual(self.torch.cuda.memory_stats(), "torch's own")
        self.on()

    def test_enabling_twice_is_refused(self):
        self.on()
        with self.assertRaisesRegex(RuntimeError, "already"):
            self.on()

    def test_a_pytorch_that_is_too_old_is_refused(self):
        self.torch._C._cuda_customAllocator = OldInner
        with self.assertRaisesRegex(RuntimeError, "too old: its allocator lacks set_record_stream_fn"):
            self.on()
        del self.torch._C._cuda_customAllocator
        with self.assertRaisesRegex(RuntimeError, "no pluggable"):
            self.on()

    def test_a_library_that_is_missing_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "/no/such.so"):
            self.g.enable(path="/no/such.so")

    def test_nothing_works_before_it_is_enabled(self):
        with self.assertRaisesRegex(RuntimeError, "enable"):
            self.g.memory_stats(0)


if __name__ == "__main__":
    unittest.main(verbosity=1)

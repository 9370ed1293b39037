# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the torch module: as much of it as granary_torch.py touches.

STANDIN_ROOT is its folder, with headers and libraries; STANDIN_VERSION, STANDIN_COMMIT and STANDIN_ABI say of which
build it is.
"""

import ctypes
import os
import sys
import types


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
    """Makes the module, and puts it where `import torch` finds it."""
    torch = types.ModuleType("torch")
    torch.__path__ = [os.environ["STANDIN_ROOT"]]
    torch.__version__ = os.environ.get("STANDIN_VERSION", "0.0")
    torch.version = types.SimpleNamespace(git_version=os.environ.get("STANDIN_COMMIT", "0123456789abcdef"))
    torch.compiled_with_cxx11_abi = lambda: os.environ.get("STANDIN_ABI", "1") == "1"
    ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libc10.so"))
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
                                   memory_stats=original, reset_peak_memory_stats=original, memory_summary=original,
                                   memory_snapshot=original, _record_memory_history=original, _snapshot=original,
                                   _dump_snapshot=original)
    torch.cuda = types.SimpleNamespace(memory=memory, CUDAGraph=Graph, memory_stats=original,
                                       reset_peak_memory_stats=original, memory_summary=original,
                                       current_device=lambda: 0,
                                       current_stream=lambda: types.SimpleNamespace(cuda_stream=0))
    sys.modules["torch"] = torch
    return torch

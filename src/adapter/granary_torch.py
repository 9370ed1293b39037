# SPDX-License-Identifier: Apache-2.0
"""PyTorch on granary.

    import granary_torch
    granary_torch.enable()          # before the first CUDA tensor

or, for a program that stays as it is:

    python3 -m granary_torch [--conf STRING] [--no-peers] SCRIPT [ARGUMENT]...

From then on every tensor's memory comes from granary. torch.cuda.memory_allocated and its like, memory_stats,
memory_summary, empty_cache, set_per_process_memory_fraction, Tensor.record_stream, torch.cuda.graph and
torch.cuda.memory._record_memory_history with its snapshots go on working. What PyTorch allows to its own allocator only
does not: torch.cuda.MemPool, sharing of CUDA tensors between processes, and CUDA graphs made by torch.compile.

Running out of memory raises torch.OutOfMemoryError where libgranary_torch_error.so was built for the PyTorch that runs,
elsewhere RuntimeError, and enable() warns. It is built by

    python3 -m granary_torch --build-error-library
"""

import argparse
import contextlib
import ctypes
import os
import pickle
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import warnings

__all__ = [
    "enable", "library", "memory_stats", "reset_peak_memory_stats", "memory_summary", "empty_cache", "snapshot",
    "record_history", "explain",
]

_library = None
_allocator = None
_originals = []  # (owner, name, what was there)

_ERROR = "libgranary_torch_error.so"  # of torch_error.cpp

_HOOKS = {  # method of PyTorch's allocator object: function of the library
    "set_record_stream_fn": "granary_torch_record_stream",
    "set_reset_fn": "granary_torch_reset",
    "set_memory_fraction_fn": "granary_torch_fraction",
    "set_begin_allocate_to_pool": "granary_torch_begin",
    "set_end_allocate_to_pool_fn": "granary_torch_end",
    "set_release_pool": "granary_torch_release",
}

_LEVELS = {"off": 0, "state": 1, "alloc": 2, "all": 3}
_STACKS = {"none": 0, "c": 1, "python": 2, "all": 3}
_MOST_ENTRIES = 1_000_000  # where PyTorch says: no limit


class _HistoryOptions(ctypes.Structure):  # struct granary_history_options
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("level", ctypes.c_int),
        ("stacks", ctypes.c_int),
        ("entries", ctypes.c_size_t),
    ]


def _find(path):
    here = os.path.dirname(os.path.abspath(__file__))
    if path is None:
        path = os.environ.get("GRANARY_TORCH_LIBRARY")
    if path is not None:
        if not os.path.exists(path):
            raise FileNotFoundError(f"granary_torch: there is no library {path}")
        return os.path.abspath(path)
    places = [here, os.path.join(here, "..", "..", "build", "release"), os.path.join(here, "..")]
    for place in places:
        path = os.path.join(place, "libgranary_torch.so")
        if os.path.exists(path):
            return os.path.abspath(path)
    raise FileNotFoundError(
        "granary_torch: libgranary_torch.so is not beside granary_torch.py; build it with `make torch`, or name it in "
        "GRANARY_TORCH_LIBRARY")


def _load(path):
    lib = ctypes.CDLL(path)
    lib.granary_torch_configure.argtypes = [ctypes.c_char_p, ctypes.c_int]
    lib.granary_torch_warning.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.granary_torch_set_thrower.argtypes = [ctypes.c_void_p]
    lib.granary_torch_set_thrower.restype = None
    lib.granary_torch_peers.argtypes = [ctypes.c_int]
    lib.granary_torch_peers.restype = None
    lib.granary_torch_expect.argtypes = [ctypes.c_int, ctypes.c_void_p]
    lib.granary_torch_expect.restype = None
    lib.granary_torch_broken.argtypes = [ctypes.c_int, ctypes.c_void_p]
    lib.granary_torch_broken.restype = None
    lib.granary_torch_handle.argtypes = [ctypes.c_int]
    lib.granary_torch_handle.restype = ctypes.c_void_p
    lib.granary_torch_stats.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    lib.granary_torch_failure.restype = ctypes.c_char_p
    lib.granary_torch_close.restype = None
    lib.granary_torch_reset.restype = None
    lib.granary_torch_fraction.argtypes = [ctypes.c_double, ctypes.c_int]
    lib.granary_torch_fraction.restype = None
    lib.granary_summary.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    lib.granary_snapshot_file.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
    lib.granary_reset_peaks.argtypes = [ctypes.c_void_p]
    lib.granary_history_options_init.argtypes = [ctypes.POINTER(_HistoryOptions)]
    lib.granary_history_options_init.restype = None
    lib.granary_record_history.argtypes = [ctypes.c_void_p, ctypes.POINTER(_HistoryOptions)]
    lib.granary_clear_history.argtypes = [ctypes.c_void_p]
    lib.granary_status_sentence.argtypes = [ctypes.c_int]
    lib.granary_status_sentence.restype = ctypes.c_char_p
    return lib


def _warnings(lib):
    text, index = ctypes.create_string_buffer(512), 0
    while lib.granary_torch_warning(index, text, len(text)) == 0:
        yield text.value.decode(errors="replace")
        index += 1


def library():
    """The loaded library. Raises RuntimeError before enable()."""
    if _library is None:
        raise RuntimeError("granary_torch: call enable() first")
    return _library


def _failure():
    return library().granary_torch_failure().decode(errors="replace")


def _check(status, call):
    if status != 0:
        raise RuntimeError(f"{call}: {library().granary_status_sentence(status).decode()}")


def _device(device):
    library()  # asking PyTorch for its device begins its own allocator, and there is no way back from that
    import torch

    if device is None:
        return torch.cuda.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    return torch.cuda.current_device() if device.index is None else device.index


def _handle(device):
    handle = library().granary_torch_handle(_device(device))
    if not handle:
        raise RuntimeError(_failure())
    return handle


def enable(conf=None, path=None, peers=True, _simulated=False):
    """All CUDA memory of PyTorch comes from granary from now on.

    conf: options as in GRANARY_CONF ("memory_limit:20GiB,reclaim:eager"), on top of what GRANARY_CONF and, below it,
    PYTORCH_CUDA_ALLOC_CONF say. What of them has no effect is a warning.
    path: libgranary_torch.so, when it is not beside this file; libgranary_torch_error.so is looked for beside it.
    peers: the GPUs that a program uses may touch the memory of each other. False: nothing is copied between them, and
    memory grows faster, as it does with one GPU.
    Call it before the first CUDA tensor: PyTorch refuses later.
    """
    global _library, _allocator
    import torch

    if _allocator is not None:
        raise RuntimeError("granary_torch: it is enabled already")
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise RuntimeError(f"granary_torch: PyTorch {torch.__version__} has no pluggable CUDA allocator")
    path = _find(path)
    lib = _load(path)
    if lib.granary_torch_configure(None if conf is None else conf.encode(), int(_simulated)) != 0:
        raise ValueError(lib.granary_torch_failure().decode(errors="replace"))
    for words in _warnings(lib):
        warnings.warn(f"granary_torch: {words}", stacklevel=2)
    lib.granary_torch_peers(int(peers))
    why = _use_error(torch, lib, path)
    if why:
        warnings.warn(f"granary_torch: running out of memory raises RuntimeError, not torch.OutOfMemoryError: {why}; "
                      "`python3 -m granary_torch --build-error-library` builds it", stacklevel=2)

    wrapper = torch.cuda.memory.CUDAPluggableAllocator(path, "granary_torch_alloc", "granary_torch_free")
    inner = wrapper._allocator
    missing = [name for name in _HOOKS if not hasattr(inner, name)]
    if missing:
        raise RuntimeError(f"granary_torch: PyTorch {torch.__version__} is too old: its allocator lacks {missing[0]}")
    for setter, function in _HOOKS.items():
        getattr(inner, setter)(ctypes.cast(getattr(lib, function), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(wrapper)
    _library, _allocator = lib, wrapper
    _patch(torch)


def _build_of(torch):
    """Names a build of PyTorch: the layout of its C++ classes is that of no other."""
    commit = str(getattr(torch.version, "git_version", None))[:12]
    return f"PyTorch {torch.__version__} (commit {commit}, C++ ABI {int(torch.compiled_with_cxx11_abi())})"


def _use_error(torch, lib, path):
    """Running out of memory raises PyTorch's own exception from now on. Returns "", or why it does not."""
    error = os.path.join(os.path.dirname(path), _ERROR)
    try:
        with open(error, "rb") as file:
            mark = re.search(rb"granary_torch_error built for ([^\0]+)\0", file.read())
    except OSError as problem:
        return f"there is no {error} ({problem.strerror})"
    built, runs = mark.group(1).decode(errors="replace") if mark else "no PyTorch that it names", _build_of(torch)
    if built != runs:
        return f"{error} was built for {built}, and this is {runs}"
    try:
        thrower = ctypes.CDLL(error).granary_torch_throw_out_of_memory
    except (OSError, AttributeError) as problem:
        return f"{error} cannot be loaded ({problem})"
    lib.granary_torch_set_thrower(ctypes.cast(thrower, ctypes.c_void_p))
    return ""


def _words(variable, otherwise=()):
    """The words of a variable of the environment, as a shell parts them."""
    value = os.environ.get(variable, "")
    try:
        return shlex.split(value) or [*otherwise]
    except ValueError as problem:
        raise ValueError(f"{variable} is {value}: {problem}") from None


def _build_error_library():
    """Builds libgranary_torch_error.so for the PyTorch of this Python. Returns an exit status and what to say."""
    try:
        import torch
    except (ImportError, OSError) as problem:
        return 77, f"{sys.executable} has no PyTorch ({problem}): {_ERROR} is not built"
    include, libraries = (os.path.join(torch.__path__[0], name) for name in ("include", "lib"))
    if not os.path.exists(os.path.join(include, "c10", "util", "Exception.h")):
        return 77, f"PyTorch has no headers in {include}: {_ERROR} is not built"
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_error.cpp")
    path = os.path.join(os.path.dirname(_find(None)), _ERROR)
    compiler, flags = _words("CXX", ["c++"]), _words("CXXFLAGS")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:  # programs may be running on the one before
        new = os.path.join(folder, _ERROR)
        command = [
            *compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f'-DGRANARY_BUILT_FOR="{_build_of(torch)}"', *flags, "-isystem", include, source, "-L" + libraries,
            "-lc10", "-o", new]
        try:
            failed = subprocess.run(command, check=False).returncode
        except OSError as problem:
            return 2, f"no C++ compiler ({problem}; the variable CXX names one): {_ERROR} is not built"
        if failed:
            return 2, f"{shlex.join(command)} failed: {_ERROR} is not built"
        os.replace(new, path)
    return 0, f"{path} is built for {_build_of(torch)}"


def _replace(owner, name, function):
    if hasattr(owner, name):
        _originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)


def _patch(torch):
    """PyTorch asks its own allocator for figures, and tells nobody of which stream a capture is, or that one broke."""
    memory = torch.cuda.memory
    for name, function in (
        ("memory_stats", memory_stats),
        ("reset_peak_memory_stats", reset_peak_memory_stats),
        ("memory_summary", memory_summary),
    ):
        for owner in (memory, torch.cuda):
            _replace(owner, name, function)
    _replace(memory, "_record_memory_history", _record_memory_history)
    _replace(memory, "_snapshot", _memory)
    _replace(memory, "_dump_snapshot", lambda filename="dump_snapshot.pickle", **_: snapshot(filename))
    for owner in (memory, torch.cuda):
        _replace(owner, "memory_snapshot", lambda *_, **__: _memory()["segments"])

    graph = torch.cuda.CUDAGraph
    begin = graph.capture_begin

    def capture_begin(self, *args, **kwargs):
        _library.granary_torch_expect(1, torch.cuda.current_stream().cuda_stream)
        try:
            return begin(self, *args, **kwargs)
        finally:
            _library.granary_torch_expect(0, None)

    end = graph.capture_end

    def capture_end(self, *args, **kwargs):
        try:
            return end(self, *args, **kwargs)
        except BaseException:
            _library.granary_torch_broken(torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)
            raise

    _replace(graph, "capture_begin", capture_begin)
    _replace(graph, "capture_end", capture_end)


def memory_stats(device=None):
    """A dict of figures with PyTorch's names; those of granary alone begin with "granary."."""
    device = _device(device)
    room = 8192
    while True:
        text = ctypes.create_string_buffer(room)
        length = library().granary_torch_stats(device, text, room)
        if length < 0:
            raise RuntimeError(_failure())
        if length < room:
            break
        room = length + 1
    pairs = (line.split() for line in text.value.decode().splitlines())
    return {name: int(value) for name, value in pairs}


def reset_peak_memory_stats(device=None):
    """Every peak is set to the current value."""
    _check(library().granary_reset_peaks(_handle(device)), "granary_reset_peaks")


def memory_summary(device=None, abbreviated=False):
    """The table of torch.cuda.memory_summary, and below it what granary counts more."""
    text = ctypes.create_string_buffer(8192)  # GRANARY_SUMMARY_ROOM
    _check(library().granary_summary(_handle(device), int(abbreviated), text, len(text)), "granary_summary")
    return text.value.decode()


def empty_cache():
    """Idle memory goes back to the driver, for other processes."""
    library().granary_torch_reset()


def snapshot(path, device=None):
    """Writes what pytorch.org/memory_viz and `granary report` show; JSON when path ends with .json."""
    form = 1 if str(path).endswith(".json") else 0
    status = library().granary_snapshot_file(_handle(device), form, os.fspath(path).encode())
    if status != 0:
        raise OSError(f"granary_torch: no snapshot in {path}: "
                      f"{library().granary_status_sentence(status).decode()}")


def record_history(level="all", entries=None, device=None, stacks="all"):
    """From now on events are remembered for snapshot(): "off", "state", "alloc" or "all".

    stacks: whose frames are taken, "none", "c", "python" or "all".
    """
    for name, value, values in (("level", level, _LEVELS), ("stacks", stacks, _STACKS)):
        if value not in values:
            raise ValueError(f"granary_torch: {name} {value!r} is not one of {', '.join(values)}")
    options = _HistoryOptions()
    library().granary_history_options_init(ctypes.byref(options))
    options.level = _LEVELS[level]
    options.stacks = _STACKS[stacks]
    if entries is not None:
        options.entries = entries
    _check(library().granary_record_history(_handle(device), ctypes.byref(options)), "granary_record_history")


def _record_memory_history(enabled="all", *args, **kwargs):
    """torch.cuda.memory._record_memory_history, in both of its forms, for one device."""
    form = _record_before_2_1 if isinstance(enabled, bool) else _record
    form(enabled, *args, **kwargs)


def _record(enabled, context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, **_):
    level = "off" if enabled is None else enabled
    if level == "all" and context != "all":
        level = "alloc"
    record_history(level, min(max_entries, _MOST_ENTRIES), device, "none" if context is None else stacks)
    if clear_history:
        _check(library().granary_clear_history(_handle(device)), "granary_clear_history")


def _record_before_2_1(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False,
                       device=None, record_context_cpp=False, **_):
    level = "off" if not enabled else "alloc" if trace_alloc_max_entries > 1 else "state"
    stacks = ("all" if record_context_cpp else "python") if record_context or trace_alloc_record_context else "none"
    record_history(level, trace_alloc_max_entries, device, stacks)


def _memory(device=None, **_):
    """torch.cuda.memory._snapshot: what snapshot() writes, as the dict that it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        snapshot(path, device)
        with open(path, "rb") as file:
            return pickle.load(file)


def explain():
    """Why the last allocation on this thread failed; "" when none did."""
    return _failure()


def _close():
    """For tests: PyTorch itself cannot go back to another allocator."""
    global _library, _allocator
    if _library is None:
        return
    for owner, name, original in reversed(_originals):
        with contextlib.suppress(AttributeError):
            setattr(owner, name, original)
    _originals.clear()
    _library.granary_torch_close()
    _library = _allocator = None


def _run(program, module, arguments):
    """The program as `python3 program arguments...` runs it, or `python3 -m module arguments...`."""
    sys.argv = [program, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.realpath(program))
    if module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")


def _leave(parser, status, words):
    parser.exit(status, (words if words.startswith("granary") else f"granary_torch: {words}") + "\n")


class _BuildErrorLibrary(argparse.Action):
    def __call__(self, parser, *_):
        try:
            _leave(parser, *_build_error_library())
        except (OSError, ValueError) as error:
            _leave(parser, 2, str(error))


def _main(words=None, _simulated=False):
    parser = argparse.ArgumentParser(
        prog="granary_torch", allow_abbrev=False,
        usage="python3 -m granary_torch [--conf STRING] [--no-peers] {SCRIPT | -m MODULE} [ARGUMENT]...\n"
              "       python3 -m granary_torch --build-error-library",
        description="Runs a program that uses PyTorch, as it is, with all CUDA memory from granary.")
    parser.add_argument("--conf", metavar="STRING",
                        help="options as in GRANARY_CONF, on top of the environment; `granary options` lists them")
    parser.add_argument("--no-peers", dest="peers", action="store_false",
                        help="GPUs do not touch each other's memory: memory of a program with several grows faster")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("--build-error-library", action=_BuildErrorLibrary, nargs=0,
                        help=f"builds {_ERROR} for this PyTorch, by which running out of memory raises "
                             "torch.OutOfMemoryError; needs a C++ compiler")
    parser.add_argument("program", metavar="SCRIPT or MODULE", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS).required = False
    given = parser.parse_args(words)
    if not given.module and not os.path.exists(given.program):
        parser.error(f"there is no file {given.program}")
    try:
        enable(conf=given.conf, peers=given.peers, _simulated=_simulated)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _leave(parser, 2, str(error))
    _run(given.program, given.module, given.arguments)


if __name__ == "__main__":
    sys.modules["granary_torch"] = sys.modules[__name__]  # the program may import it, and is to find this one
    _main()

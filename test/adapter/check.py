# SPDX-License-Identifier: Apache-2.0
"""granary_torch.py on the simulated device, under a stand-in for the torch module.   check.py FOLDER_OF_THE_LIBRARY"""

import ctypes
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.abspath(sys.argv.pop(1))
STAGE = tempfile.TemporaryDirectory()
LIBRARY = os.path.join(STAGE.name, "libgranary_torch.so")
ERROR = os.path.join(STAGE.name, "libgranary_torch_error.so")
os.environ["STANDIN_ROOT"] = os.path.join(FOLDER, "test", "adapter", "pytorch")
os.environ["GRANARY_TORCH_LIBRARY"] = LIBRARY
sys.path.insert(0, FOLDER)

from standin import Id, OldInner, fake_torch  # noqa: E402


def setUpModule():
    """The library, and beside it an error library for the stand-in."""
    os.symlink(os.path.join(FOLDER, "libgranary_torch.so"), LIBRARY)
    build = "import standin; standin.fake_torch(); import granary_torch; granary_torch._main(['--build-error-library'])"
    subprocess.run([sys.executable, "-c", build], check=True, stderr=subprocess.DEVNULL,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, HERE])})


def tearDownModule():
    STAGE.cleanup()


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
        self.assertEqual(stats["num_alloc_retries"], 0)
        self.assertGreater(self.g.memory_stats()["num_device_free"], 0)
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

    def test_the_history_and_snapshots_of_pytorch_are_granarys(self):
        inner, memory = self.on(), self.torch.cuda.memory
        churn = lambda size: inner.free(inner.alloc(size, 0, None), size, 0, None)
        events = lambda: memory._snapshot()["device_traces"][0]
        files = lambda: {os.path.basename(f["filename"]) for e in events() for f in e["frames"]}
        sizes = lambda: [e["size"] for e in events() if e["action"] == "alloc"]
        memory._record_memory_history(max_entries=100000, context="alloc", stacks="python")
        churn(12345)
        self.assertEqual(sizes(), [12345])
        self.assertIn("check.py", files())
        self.assertTrue(all(name.endswith(".py") for name in files()), files())
        memory._record_memory_history(enabled=None)
        churn(54321)
        self.assertEqual(sizes(), [12345])
        memory._record_memory_history(context=None, clear_history=True)
        churn(1000)
        self.assertEqual((sizes(), files()), ([1000], set()))
        memory._record_memory_history(True, trace_alloc_max_entries=20)  # as it was before PyTorch 2.1
        for size in range(1, 100):
            churn(size)
        self.assertEqual(len(events()), 20)
        with self.assertRaisesRegex(ValueError, "'loud'"):
            memory._record_memory_history("loud")
        kept = inner.alloc(3 << 20, 0, None)
        self.assertEqual(sum(s["allocated_size"] for s in memory.memory_snapshot()), 3 << 20)
        inner.free(kept, 3 << 20, 0, None)
        with tempfile.TemporaryDirectory() as folder:
            memory._dump_snapshot(os.path.join(folder, "s.pickle"))
            with open(os.path.join(folder, "s.pickle"), "rb") as f:
                self.assertEqual(len(pickle.load(f)["device_traces"][0]), 20)

    def test_a_bad_option_is_named_and_nothing_changes(self):
        with self.assertRaisesRegex(ValueError, "perhaps"):
            self.on("reclaim:perhaps")
        self.assertEqual(self.torch.cuda.memory_stats(), "torch's own")
        self.on()

    def test_what_has_no_effect_is_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "max_split_size_mb has no effect"):
            self.on("max_split_size_mb:128")
        self.g._close()
        with warnings.catch_warnings(record=True) as heard:
            self.on("memory_limit:1GiB")
        self.assertEqual(heard, [])

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

    def test_nothing_works_before_it_is_enabled_and_it_can_be_enabled_still(self):
        self.torch.cuda.current_device = lambda: self.fail("PyTorch's own allocator begins")
        for call in (self.g.memory_stats, self.g.memory_summary, self.g.reset_peak_memory_stats, self.g.empty_cache,
                     self.g.record_history, self.g.explain, lambda: self.g.snapshot("s.pickle")):
            with self.assertRaisesRegex(RuntimeError, r"call enable\(\) first"):
                call()


class Programs(unittest.TestCase):
    """Programs in processes of their own, that find the stand-in when they import torch."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("torch.py", "import standin\nstandin.fake_torch()\n")

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_python(self, *words, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTORCH_", "GRANARY_"))}
        path = os.pathsep.join([FOLDER, HERE, self.folder.name])
        return subprocess.run([sys.executable, *words], cwd=self.folder.name, capture_output=True, text=True, check=False,
                              env={**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
                                   "GRANARY_TORCH_LIBRARY": LIBRARY, **environment})

    def say(self, *words, **environment):
        done = self.run_python(*words, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\n")[:-1]


class Program(Programs):
    """python3 -m granary_torch."""

    def setUp(self):
        super().setUp()
        self.write("job/helper.py", "word = 'helped'\n")
        self.write("job/train.py", PROGRAM)

    def test_a_script_runs_as_it_would_alone_and_on_granary(self):
        alone = self.say("job/train.py", "--conf", "a b", "-m")
        on = self.say("-m", "granary_torch", "--conf", "memory_limit:64MiB", "job/train.py", "--conf", "a b", "-m")
        self.assertEqual(alone[-1], "off")
        self.assertEqual(on[-1], "on")
        self.assertEqual(on[:-1], alone[:-1])
        self.assertEqual(alone[1], repr(["job/train.py", "--conf", "a b", "-m"]))

    def test_a_module_runs_as_it_would_alone_and_on_granary(self):
        alone = self.say("-m", "job.train", "x")
        for way in (["-m", "granary_torch"], [os.path.join(FOLDER, "granary_torch.py")]):
            on = self.say(*way, "-m", "job.train", "x")
            self.assertEqual((on[:-1], alone[-1], on[-1]), (alone[:-1], "off", "on"))

    def test_what_is_given_lies_on_top_of_the_environment(self):
        self.write("take.py", "import sys, torch\ntorch.current.alloc(int(sys.argv[1]) << 20, 0, None)\nprint('had it')\n")
        run = ("-c", "import sys, granary_torch; granary_torch._main(sys.argv[1:], _simulated=True)")
        variables = {"PYTORCH_CUDA_ALLOC_CONF": "memory_limit:4MiB", "GRANARY_CONF": "memory_limit:32MiB"}
        self.assertEqual(self.say(*run, "take.py", "20", **variables), ["had it"])
        self.assertEqual(self.say(*run, "--conf", "memory_limit:64MiB", "take.py", "50", **variables), ["had it"])
        self.assertNotIn("had it", self.run_python(*run, "take.py", "50", **variables).stdout)

    def test_its_options_are_those_of_enable(self):
        self.write("none.py", "")
        run = ("-c", "import sys, granary_torch; granary_torch.enable = lambda **given: print(given)\n"
               "granary_torch._main(sys.argv[1:])")
        plain = {"conf": None, "peers": True, "_simulated": False}
        self.assertEqual(self.say(*run, "none.py", "--no-peers"), [repr(plain)])
        self.assertEqual(self.say(*run, "--no-peers", "--conf", "reclaim:off", "none.py"),
                         [repr({**plain, "conf": "reclaim:off", "peers": False})])

    def test_the_exit_status_is_that_of_the_script(self):
        self.write("seven.py", "raise SystemExit(7)\n")
        self.assertEqual(self.run_python("-m", "granary_torch", "seven.py").returncode, 7)

    def test_wrong_use_is_said_before_anything_runs(self):
        for words, wrong in (
            ((), "required: SCRIPT or MODULE\n"),
            (("-m",), "required: SCRIPT or MODULE\n"),
            (("no-such.py",), "no file no-such.py"),
            (("--fast", "job/train.py"), "--fast"),
            (("--conf", "reclaim:perhaps", "job/train.py"), "column 9: 'perhaps'"),
        ):
            done = self.run_python("-m", "granary_torch", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(wrong, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        lost = self.run_python("-m", "granary_torch", "job/train.py", GRANARY_TORCH_LIBRARY="/no/such.so")
        self.assertEqual((lost.returncode, lost.stderr), (2, "granary_torch: there is no library /no/such.so\n"))
        self.assertIn("--conf STRING", self.run_python("-m", "granary_torch", "--help").stdout)


class RunningOut(Programs):
    """Nobody catches what is thrown here, so the C++ library names its type as the process ends."""

    def setUp(self):
        super().setUp()
        self.write("over.py", "import torch\ntorch.current.alloc(9 << 20, 0, None)\n")
        self.stage = os.path.join(self.folder.name, "stage")
        shutil.copytree(STAGE.name, self.stage, symlinks=True)
        self.core, self.error = (os.path.join(self.stage, os.path.basename(f)) for f in (LIBRARY, ERROR))

    def run_out(self, program="over.py", **environment):
        run = ("import sys, granary_torch; "
               "granary_torch._main(['--conf', 'memory_limit:8MiB', sys.argv[1]], _simulated=True)")
        done = self.run_python("-c", run, program, GRANARY_TORCH_LIBRARY=self.core, **environment)
        self.assertLess(done.returncode, 0, done.stderr)
        return done.stderr

    def build(self, **environment):
        return self.run_python("-m", "granary_torch", "--build-error-library", GRANARY_TORCH_LIBRARY=self.core,
                               **environment)

    def assert_not_used(self, why, **environment):
        said = self.run_out(**environment)
        self.assertIn("UserWarning: granary_torch: running out of memory raises RuntimeError, ", said)
        self.assertIn(why, said)
        self.assertIn("`python3 -m granary_torch --build-error-library` builds it", said)
        self.assertIn("'std::runtime_error'\n  what():  CUDA out of memory. granary: ", said)

    def test_it_is_thrown_as_pytorchs_own_error(self):
        said = self.run_out()
        self.assertIn("'c10::OutOfMemoryError'\n  what():  CUDA out of memory. granary: ", said)
        self.assertNotIn("Warning", said)

    def test_what_is_no_want_of_memory_is_not(self):
        self.write("lost.py", "import torch\ntorch.current.alloc(1000, 99, None)\n")
        self.assertIn("'std::runtime_error'\n  what():  granary: device 99 ", self.run_out("lost.py"))

    def test_without_the_error_library_a_warning_says_how_to_get_it(self):
        os.remove(self.error)
        self.assert_not_used(f"there is no {self.error}")

    def test_an_error_library_of_another_pytorch_is_not_used_and_both_are_named(self):
        built = "PyTorch 0.0 (commit 0123456789ab, C++ ABI 1)"
        for runs, environment in (
            ("PyTorch 0.0 (commit 0123456789ab, C++ ABI 0)", {"STANDIN_ABI": "0"}),
            ("PyTorch 0.0 (commit cafe, C++ ABI 1)", {"STANDIN_COMMIT": "cafe"}),
            ("PyTorch 0.1 (commit 0123456789ab, C++ ABI 1)", {"STANDIN_VERSION": "0.1"}),
        ):
            self.assert_not_used(f"{self.error} was built for {built}, and this is {runs};", **environment)
        self.assertEqual(self.build(**environment).returncode, 0)
        self.assertIn("'c10::OutOfMemoryError'", self.run_out(**environment))

    def test_a_file_that_is_no_error_library_is_not_used(self):
        with open(self.error, "rb") as f:
            mark = f.read().split(b"granary_torch_error built for ")[1].split(b"\0")[0]
        for held, why in ((b"", "was built for no PyTorch that it names"),
                          (b"granary_torch_error built for " + mark + b"\0", "cannot be loaded")):
            with open(self.error, "wb") as f:
                f.write(held)
            self.assert_not_used(why)

    def test_when_it_cannot_be_built_it_says_why_and_leaves_the_one_before(self):
        bare = os.path.join(self.folder.name, "bare")
        shutil.copytree(os.path.join(os.environ["STANDIN_ROOT"], "lib"), os.path.join(bare, "lib"))
        for status, words, environment in (
            (77, f"PyTorch has no headers in {bare}/include", {"STANDIN_ROOT": bare}),
            (2, "no C++ compiler", {"CXX": "/no/such/compiler"}),
            (2, "granary_torch: CXX is g++ ': No closing quotation\n", {"CXX": "g++ '"}),
            (2, "granary_torch: CXXFLAGS is -DX=don't: No closing quotation\n", {"CXXFLAGS": "-DX=don't"}),
            (2, "-UGRANARY_BUILT_FOR -isystem ", {"CXXFLAGS": "-UGRANARY_BUILT_FOR"}),  # the command that failed
            (2, "c10::Error::Error(std::string)", {"STANDIN_ABI": "0"}),  # which libc10.so, of the other ABI, lacks
        ):
            done = self.build(**environment)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        self.write("torch.py", "raise ImportError('as if it were not there')\n")
        done = self.build()
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stderr, r"^granary_torch: .* has no PyTorch \(as if it were not there\): "
                                      r"libgranary_torch_error.so is not built\n$")
        with open(ERROR, "rb") as before, open(self.error, "rb") as after:
            self.assertEqual(before.read(), after.read())
        self.assertEqual(sorted(os.listdir(self.stage)), sorted(os.listdir(STAGE.name)))


class Make(Programs):
    """make torch and make torch-error, where the error library does not compile."""

    def setUp(self):
        super().setUp()
        self.log = os.path.join(FOLDER, "libgranary_torch_error.log")
        self.compiler = os.path.join(self.folder.name, "compiler")
        self.write("compiler", "#!/bin/sh\necho the words of the compiler >&2\nexit 3\n")
        os.chmod(self.compiler, 0o755)
        self.addCleanup(lambda: os.path.exists(self.log) and os.remove(self.log))

    def make(self, target):
        """PYTHON finds the stand-in and a compiler of its own; all else is as it was built."""
        python = ["env", f"CXX={self.compiler}", f"PYTHONPATH={HERE}{os.pathsep}{self.folder.name}", sys.executable]
        return subprocess.run([os.environ.get("MAKE", "make"), "V=" + os.path.basename(FOLDER),
                               "PYTHON=" + shlex.join(python), target], cwd=os.path.join(HERE, "..", ".."),
                              capture_output=True, text=True, check=False)

    def test_torch_is_made_and_says_what_it_lacks_and_where_the_compilers_words_are(self):
        done = self.make("torch")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"granary_torch: .*/compiler .*torch_error\.cpp.* failed: "
                                      r"libgranary_torch_error\.so is not built\n")
        self.assertRegex(done.stderr, r"running out of memory raises RuntimeError, not torch\.OutOfMemoryError\n")
        self.assertIn(os.path.relpath(self.log, os.path.join(HERE, "..", "..")), done.stderr)
        self.assertNotIn("the words of the compiler", done.stderr)
        with open(self.log) as f:
            self.assertIn("the words of the compiler\n", f.read())

    def test_torch_is_made_without_pytorch_and_says_so(self):
        self.write("torch.py", "raise ImportError('as if it were not there')\n")
        done = self.make("torch")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has no PyTorch (as if it were not there)", done.stderr)
        self.assertFalse(os.path.exists(self.log))

    def test_torch_error_fails_with_the_compilers_words(self):
        done = self.make("torch-error")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the words of the compiler\n", done.stderr)


PROGRAM = """
import os, pickle, sys
import torch, granary_torch

class Kept:
    pass

print(__name__)
print(sys.argv)
print(os.path.realpath(__file__), sys.modules["__main__"].__dict__ is globals())
print(os.path.realpath(sys.path[0]))
print(type(pickle.loads(pickle.dumps(Kept()))))
if not __package__:  # a script
    import helper
    print(helper.word)
try:
    granary_torch.library()
    print("on" if hasattr(torch, "current") else "half")
except RuntimeError:
    print("off")
"""

if __name__ == "__main__":
    unittest.main(verbosity=1)

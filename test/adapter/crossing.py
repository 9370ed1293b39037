# SPDX-License-Identifier: Apache-2.0
"""What granary throws comes through PyTorch to Python as it should.   crossing.py FOLDER_OF_THE_LIBRARY

On the simulated device, with any PyTorch that has headers; the exit status is 77 where there is none.
"""

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.abspath(sys.argv.pop(1))
LIBRARY = os.path.join(FOLDER, "libgranary_torch.so")
sys.path.insert(0, FOLDER)


def load_operator(torch):
    include, libraries = (os.path.join(torch.__path__[0], name) for name in ("include", "lib"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "crossing.so")
        subprocess.run([*shlex.split(os.environ.get("CXX") or "c++"), "-std=c++17", "-w", "-fPIC", "-shared",
                        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", "-isystem", include,
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "crossing.cpp"),
                        "-L" + libraries, "-ltorch_cpu", "-lc10", "-o", path], check=True)
        torch.ops.load_library(path)


class Crossing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        load_operator(torch)

    def setUp(self):
        self.lib = granary_torch._load(LIBRARY)
        self.assertEqual(self.lib.granary_torch_configure(b"memory_limit:8MiB", 1), 0)
        self.addCleanup(self.lib.granary_torch_close)

    def take(self, size, device=0):
        address = ctypes.cast(self.lib.granary_torch_alloc, ctypes.c_void_p).value
        return torch.ops.granary_test.take(address, size, device)

    def test_running_out_is_pytorchs_own_error_and_the_program_goes_on(self):
        self.assertEqual(granary_torch._use_error(torch, self.lib, LIBRARY), "")
        kind = torch.cuda.OutOfMemoryError
        for size in (9 << 20, 1 << 50, -1):
            with self.assertRaises(kind) as raised:
                self.take(size)
            self.assertIs(type(raised.exception), kind)
            words = str(raised.exception)
            self.assertTrue(words.startswith("CUDA out of memory. granary: "), words)
            self.assertNotIn("Exception raised from", words)
        self.assertTrue(self.take(4 << 20))

    def test_other_failures_are_runtime_errors(self):
        self.assertEqual(granary_torch._use_error(torch, self.lib, LIBRARY), "")
        with self.assertRaisesRegex(RuntimeError, "^granary: device 99 is not one of") as raised:
            self.take(1000, 99)
        self.assertIs(type(raised.exception), RuntimeError)

    def test_without_the_error_library_running_out_is_a_runtime_error(self):
        with self.assertRaisesRegex(RuntimeError, "^CUDA out of memory. granary: ") as raised:
            self.take(9 << 20)
        self.assertIs(type(raised.exception), RuntimeError)


if __name__ == "__main__":
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if not os.path.exists(os.path.join(torch.__path__[0], "include", "torch", "library.h")):
        sys.exit(77)
    import granary_torch

    unittest.main(verbosity=1)

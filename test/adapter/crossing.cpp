// SPDX-License-Identifier: Apache-2.0
// An operator of PyTorch that allocates as PyTorch's pluggable allocator does: by the address of a function.
#include <torch/library.h>

TORCH_LIBRARY(granary_test, library) {
    library.def("take", [](int64_t function, int64_t size, int64_t device) {
        auto *alloc = reinterpret_cast<void *(*)(ssize_t, int, void *)>(function);
        return reinterpret_cast<int64_t>(alloc(size, static_cast<int>(device), nullptr));
    });
}

// SPDX-License-Identifier: Apache-2.0
// libgranary_torch_error.so: want of memory as PyTorch itself throws it. Of all files this one includes PyTorch, and so
// it fits one build of PyTorch. `granary_torch.py --build-error-library` compiles it, from nothing but this file.
#include <c10/util/Exception.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Read from the file, before the library is loaded.
EXPORT const char granary_torch_error_built_for[] = "granary_torch_error built for " GRANARY_BUILT_FOR;

// A granary_torch_thrower.
EXPORT void granary_torch_throw_out_of_memory(const char *words) {
    C10_THROW_ERROR(OutOfMemoryError, words);
}

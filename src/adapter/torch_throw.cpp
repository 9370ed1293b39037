// SPDX-License-Identifier: Apache-2.0
// What only C++ can do for PyTorch: to fail. PyTorch takes whatever address it gets for memory, and turns
// an exception into Python's RuntimeError.
#include <stdexcept>

#include "adapter/torch.h"

void *granary_torch_alloc(ssize_t size, int device, granary_stream stream) {
    void *ptr;
    // A negative size is one that no device could hold, and is refused as that.
    if (gr_torch_alloc(static_cast<size_t>(size), device, stream, &ptr) != GRANARY_OK)
        throw std::runtime_error(granary_torch_failure());
    return ptr;
}

void granary_torch_begin(int device, struct granary_torch_id id, void *) {
    if (gr_torch_begin(device, id) != GRANARY_OK) throw std::runtime_error(granary_torch_failure());
}

void granary_torch_record_stream(void *ptr, granary_stream stream) {
    if (gr_torch_record_stream(ptr, stream) != GRANARY_OK) throw std::runtime_error(granary_torch_failure());
}

void granary_torch_fraction(double fraction, int device) {
    if (gr_torch_fraction(fraction, device) != GRANARY_OK) throw std::runtime_error(granary_torch_failure());
}

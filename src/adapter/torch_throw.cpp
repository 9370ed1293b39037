// SPDX-License-Identifier: Apache-2.0
// What only C++ can do for PyTorch: to fail. PyTorch takes whatever address it gets for memory, and turns
// an exception into one of Python.
#include <stdexcept>

#include "adapter/torch.h"

// Made of no file of PyTorch, it can throw PyTorch's own exception for want of memory by the thrower only.
static void check(int status) {
    if (status == GRANARY_OK) return;
    const char *words = granary_torch_failure();
    granary_torch_thrower thrower = gr_torch_thrower();
    if (status == GRANARY_OUT_OF_MEMORY && thrower) thrower(words);
    throw std::runtime_error(words);
}

void *granary_torch_alloc(ssize_t size, int device, granary_stream stream) {
    void *ptr;
    // A negative size is one that no device could hold, and is refused as that.
    check(gr_torch_alloc(static_cast<size_t>(size), device, stream, &ptr));
    return ptr;
}

void granary_torch_begin(int device, struct granary_torch_id id, void *) {
    check(gr_torch_begin(device, id));
}

void granary_torch_record_stream(void *ptr, granary_stream stream) {
    check(gr_torch_record_stream(ptr, stream));
}

void granary_torch_fraction(double fraction, int device) {
    check(gr_torch_fraction(fraction, device));
}

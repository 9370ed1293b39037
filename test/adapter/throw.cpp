// SPDX-License-Identifier: Apache-2.0
// What PyTorch calls throws when there is no memory, and what is thrown can be caught by its base class.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <typeinfo>

#include <granary/sim.h>

#include "adapter/torch.h"

namespace {

int failures;

template <class Kind> bool throws(const char *word, void (*call)()) {
    failures++;
    try {
        call();
    } catch (const std::exception &e) {
        if (typeid(e) == typeid(Kind) && std::strstr(e.what(), word)) return true;
        std::printf("throw: not %s \"%s\" but %s: %s\n", typeid(Kind).name(), word, typeid(e).name(),
                    e.what());
        return false;
    }
    std::printf("throw: nothing is thrown, not \"%s\"\n", word);
    return false;
}

struct Shortage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void take_too_much() {
    granary_torch_alloc(9 << 20, 0, nullptr);
}

void take_more_than_any_device_has() {
    granary_torch_alloc(-1, 0, nullptr);
}

void begin_a_capture() {
    granary_torch_expect(1, nullptr);
    granary_torch_begin(0, granary_torch_id{0, 1}, nullptr);
}

void limit_to_twice_the_device() {
    granary_torch_fraction(2, 0);
}

// Want of memory throws that kind, and nothing else does.
template <class Kind> bool want_of_memory_throws() {
    bool good = throws<Kind>("CUDA out of memory. granary: ", take_too_much);
    good &= throws<Kind>("CUDA out of memory. granary: ", take_more_than_any_device_has);
    good &= throws<std::runtime_error>("granary: ", begin_a_capture);
    good &= throws<std::runtime_error>("2 is not from 0 to 1", limit_to_twice_the_device);
    return good;
}

} // namespace

int main() {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    config.driver_version = 12020; // captures are refused
    if (granary_sim_open(&config) != GRANARY_OK || granary_torch_configure("memory_limit:8MiB", 1) != 0)
        return 1;
    bool good = want_of_memory_throws<std::runtime_error>();
    granary_torch_set_thrower([](const char *words) { throw Shortage(words); });
    good &= want_of_memory_throws<Shortage>();
    granary_torch_set_thrower([](const char *) {}); // one that returns is no way to memory
    good &= want_of_memory_throws<std::runtime_error>();
    void *ptr = granary_torch_alloc(4 << 20, 0, nullptr);
    good &= ptr != nullptr && granary_torch_alloc(0, 0, nullptr) == nullptr;
    granary_torch_free(ptr, 4 << 20, 0, nullptr);
    granary_torch_close();
    if (granary_sim_close() != GRANARY_OK) good = false;
    if (good) std::printf("throw: %d failures, each an exception of its kind with its words\n", failures);
    return !good;
}

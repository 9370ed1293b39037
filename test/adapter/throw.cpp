// SPDX-License-Identifier: Apache-2.0
// What PyTorch calls throws when there is no memory, and what is thrown can be caught by its base class.
#include <cstdio>
#include <cstring>
#include <exception>

#include <granary/sim.h>

#include "adapter/torch.h"

static bool throws(const char *word, void (*call)()) {
    try {
        call();
    } catch (const std::exception &e) {
        if (std::strstr(e.what(), word)) return true;
        std::printf("throw: not \"%s\" but: %s\n", word, e.what());
        return false;
    }
    std::printf("throw: nothing is thrown, not \"%s\"\n", word);
    return false;
}

int main() {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    config.driver_version = 12020; // captures are refused
    if (granary_sim_open(&config) != GRANARY_OK || granary_torch_configure("memory_limit:8MiB", 1) != 0)
        return 1;
    bool good = throws("CUDA out of memory. granary: ", [] { granary_torch_alloc(9 << 20, 0, nullptr); });
    good &= throws("granary: ", [] { granary_torch_alloc(-1, 0, nullptr); });
    good &= throws("granary: ", [] {
        granary_torch_expect(1, nullptr);
        granary_torch_begin(0, granary_torch_id{0, 1}, nullptr);
    });
    good &= throws("2 is not from 0 to 1", [] { granary_torch_fraction(2, 0); });
    void *ptr = granary_torch_alloc(4 << 20, 0, nullptr);
    good &= ptr != nullptr && granary_torch_alloc(0, 0, nullptr) == nullptr;
    granary_torch_free(ptr, 4 << 20, 0, nullptr);
    granary_torch_close();
    if (granary_sim_close() != GRANARY_OK) good = false;
    if (good) std::printf("throw: 4 failures, each an exception with its words\n");
    return !good;
}

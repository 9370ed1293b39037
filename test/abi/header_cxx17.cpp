/* SPDX-License-Identifier: Apache-2.0
 * The public headers compile alone as strict C++17, and mix with both CUDA interfaces. */
#pragma GCC diagnostic error "-Wpedantic"
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic error "-Wold-style-cast"

#include <granary/sim.h>

#include <granary/granary.h>
#include <granary/history.h>
#include <granary/options.h>
#include <granary/sim.h>

#if __has_include(<cuda.h>) && __has_include(<cuda_runtime_api.h>)
/* The toolkit's own headers are not ours to judge. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda.h>
#include <cuda_runtime_api.h>
#pragma GCC diagnostic pop
#include <type_traits>

static_assert(std::is_same_v<granary_stream, CUstream>, "driver API");
static_assert(std::is_same_v<granary_stream, cudaStream_t>, "runtime API");

extern "C" int mixes_with_cuda(granary *g, CUstream driver_stream, cudaStream_t runtime_stream, void **out) {
    return granary_alloc(g, 1, driver_stream, out) + granary_alloc(g, 1, runtime_stream, out);
}
#endif

/* Names have C linkage. */
extern "C" int granary_free(granary *g, void *ptr);

int smallest_program() {
    granary *g = nullptr;
    void *p = nullptr;
    granary_options options;
    granary_options_init(&options);
    if (granary_open(0, &options, &g) == GRANARY_OK && granary_alloc(g, 1 << 20, nullptr, &p) == GRANARY_OK)
        granary_free(g, p);
    granary_close(g);
    return 0;
}

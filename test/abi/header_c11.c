/* SPDX-License-Identifier: Apache-2.0
 * The public headers compile alone as strict C11, and mix with both CUDA interfaces. */
#pragma GCC diagnostic error "-Wpedantic"
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"
#pragma GCC diagnostic error "-Wstrict-prototypes"

#include <granary/sim.h>

#include <granary/granary.h>
#include <granary/history.h>
#include <granary/options.h>
#include <granary/sim.h>

#if defined(__has_include)
#if __has_include(<cuda.h>) && __has_include(<cuda_runtime_api.h>)
#define HAS_CUDA 1
#endif
#endif

#ifdef HAS_CUDA
/* The toolkit's own headers are not ours to judge. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda.h>
#include <cuda_runtime_api.h>
#pragma GCC diagnostic pop

/* One type under three names: no casts. */
int mixes_with_cuda(granary *g, CUstream driver_stream, cudaStream_t runtime_stream, void **out);
int mixes_with_cuda(granary *g, CUstream driver_stream, cudaStream_t runtime_stream, void **out) {
    granary_stream ours = driver_stream;
    driver_stream = ours;
    runtime_stream = ours;
    return granary_alloc(g, 1, driver_stream, out) + granary_alloc(g, 1, runtime_stream, out) +
           granary_free(g, *out);
}
#endif

/* Extensible structs start with their size. */
#define STARTS_WITH_SIZE(type)                                                  \
    _Static_assert(offsetof(struct type, struct_size) == 0 &&                   \
                       sizeof((struct type *)0)->struct_size == sizeof(size_t), \
                   #type)
STARTS_WITH_SIZE(granary_options);
STARTS_WITH_SIZE(granary_facts);
STARTS_WITH_SIZE(granary_stats);
STARTS_WITH_SIZE(granary_driver_calls);
STARTS_WITH_SIZE(granary_shortfall);
STARTS_WITH_SIZE(granary_fault);
STARTS_WITH_SIZE(granary_sim_config);
STARTS_WITH_SIZE(granary_sim_held);

/* Codes are 0 or negative and different from one another: a double one is a double case. */
const char *name_of(enum granary_status status);
const char *name_of(enum granary_status status) {
    switch (status) {
#define CASE(name, value, sentence)                                  \
    case GRANARY_##name: {                                           \
        _Static_assert((value) <= 0 && sizeof(sentence) > 1, #name); \
        return #name;                                                \
    }
        GRANARY_STATUS_MAP(CASE)
#undef CASE
    }
    return NULL;
}

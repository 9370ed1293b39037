/* SPDX-License-Identifier: Apache-2.0
 * The part of the CUDA driver's binary interface that granary uses.
 *
 * Declared here from the ABI so that no toolkit is needed to build, and so that any toolkit gives
 * the same library. Names differ from cuda.h on purpose: test/abi includes both and asserts that
 * sizes, offsets and values agree. The tags of the opaque handles are cuda.h's own, so pointers to
 * them mix with both CUDA interfaces. */
#ifndef GR_DRIVER_ABI_H
#define GR_DRIVER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int gr_cu_result;
typedef int gr_cu_device;
typedef unsigned long long gr_cu_ptr;    /* CUdeviceptr */
typedef unsigned long long gr_cu_handle; /* CUmemGenericAllocationHandle */
typedef struct CUctx_st *gr_cu_context;
typedef struct CUstream_st *gr_cu_stream;
typedef struct CUevent_st *gr_cu_event;
typedef struct CUgraph_st *gr_cu_graph;
typedef struct CUgraphNode_st *gr_cu_node;
typedef struct CUgraphExec_st *gr_cu_graph_exec;
typedef void (*gr_cu_host_fn)(void *data);

/* Result codes that mean something to us; name and value as in cuda.h. */
#define GR_CU_RESULT_MAP(X)             \
    X(SUCCESS, 0)                       \
    X(INVALID_VALUE, 1)                 \
    X(OUT_OF_MEMORY, 2)                 \
    X(NOT_INITIALIZED, 3)               \
    X(DEINITIALIZED, 4)                 \
    X(STUB_LIBRARY, 34)                 \
    X(NO_DEVICE, 100)                   \
    X(INVALID_DEVICE, 101)              \
    X(INVALID_CONTEXT, 201)             \
    X(ECC_UNCORRECTABLE, 214)           \
    X(INVALID_HANDLE, 400)              \
    X(ILLEGAL_STATE, 401)               \
    X(LOSSY_QUERY, 402)                 \
    X(NOT_FOUND, 500)                   \
    X(NOT_READY, 600)                   \
    X(ILLEGAL_ADDRESS, 700)             \
    X(LAUNCH_TIMEOUT, 702)              \
    X(CONTEXT_IS_DESTROYED, 709)        \
    X(ASSERT, 710)                      \
    X(HARDWARE_STACK_ERROR, 714)        \
    X(ILLEGAL_INSTRUCTION, 715)         \
    X(MISALIGNED_ADDRESS, 716)          \
    X(INVALID_ADDRESS_SPACE, 717)       \
    X(INVALID_PC, 718)                  \
    X(LAUNCH_FAILED, 719)               \
    X(NOT_PERMITTED, 800)               \
    X(NOT_SUPPORTED, 801)               \
    X(STREAM_CAPTURE_UNSUPPORTED, 900)  \
    X(STREAM_CAPTURE_INVALIDATED, 901)  \
    X(STREAM_CAPTURE_MERGE, 902)        \
    X(STREAM_CAPTURE_UNMATCHED, 903)    \
    X(STREAM_CAPTURE_UNJOINED, 904)     \
    X(STREAM_CAPTURE_ISOLATION, 905)    \
    X(STREAM_CAPTURE_IMPLICIT, 906)     \
    X(CAPTURED_EVENT, 907)              \
    X(STREAM_CAPTURE_WRONG_THREAD, 908) \
    X(UNKNOWN, 999)

enum gr_cu_result_code {
#define GR_CU_RESULT_ENUM(name, value) GR_CU_##name = value,
    GR_CU_RESULT_MAP(GR_CU_RESULT_ENUM)
#undef GR_CU_RESULT_ENUM
};

/* Device attributes (CUdevice_attribute). */
enum {
    GR_CU_ATTR_INTEGRATED = 18,
    GR_CU_ATTR_COMPUTE_MODE = 20,
    GR_CU_ATTR_UNIFIED_ADDRESSING = 41,
    GR_CU_ATTR_CC_MAJOR = 75,
    GR_CU_ATTR_CC_MINOR = 76,
    GR_CU_ATTR_VMM = 102,
    GR_CU_ATTR_HANDLE_POSIX_FD = 103,
    GR_CU_ATTR_GENERIC_COMPRESSION = 107,
    GR_CU_ATTR_RDMA_WITH_VMM = 110,
    GR_CU_ATTR_HANDLE_FABRIC = 128
};

/* Values of the small enumerations. */
enum {
    GR_CU_MEM_TYPE_PINNED = 1,
    GR_CU_HANDLE_NONE = 0,
    GR_CU_HANDLE_POSIX_FD = 1,
    GR_CU_HANDLE_FABRIC = 8,
    GR_CU_LOCATION_DEVICE = 1,
    GR_CU_LOCATION_HOST = 2,
    GR_CU_LOCATION_HOST_NUMA = 3,
    GR_CU_LOCATION_HOST_NUMA_CURRENT = 4,
    GR_CU_ACCESS_NONE = 0,
    GR_CU_ACCESS_READ = 1,
    GR_CU_ACCESS_READWRITE = 3,
    GR_CU_GRANULARITY_MINIMUM = 0,
    GR_CU_GRANULARITY_RECOMMENDED = 1,
    GR_CU_EVENT_DISABLE_TIMING = 2,
    GR_CU_STREAM_NON_BLOCKING = 1,
    GR_CU_CAPTURE_NONE = 0, /* CUstreamCaptureStatus */
    GR_CU_CAPTURE_ACTIVE = 1,
    GR_CU_CAPTURE_INVALIDATED = 2,
    GR_CU_CAPTURE_MODE_GLOBAL = 0,
    GR_CU_CAPTURE_MODE_THREAD_LOCAL = 1,
    GR_CU_CAPTURE_MODE_RELAXED = 2,
    GR_CU_DEPENDENCIES_ADD = 0,
    GR_CU_DEPENDENCIES_SET = 1,
    GR_CU_EDGE_DEFAULT = 0, /* CUgraphDependencyType */
    GR_CU_EDGE_PROGRAMMATIC = 1,
    GR_CU_PROC_DEFAULT = 0 /* cuGetProcAddress flags */
};

#define GR_CU_STREAM_LEGACY ((gr_cu_stream)1)
#define GR_CU_STREAM_PER_THREAD ((gr_cu_stream)2)

struct gr_cu_location { /* CUmemLocation */
    int type;
    int id;
};

struct gr_cu_mem_prop { /* CUmemAllocationProp */
    int type;
    int requested_handle_types;
    struct gr_cu_location location;
    void *win32_meta;
    struct {
        unsigned char compression_type;
        unsigned char rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct gr_cu_access { /* CUmemAccessDesc */
    struct gr_cu_location location;
    int flags;
};

struct gr_cu_edge { /* CUgraphEdgeData */
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
};

#endif

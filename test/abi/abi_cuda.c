/* SPDX-License-Identifier: Apache-2.0
 * Our declarations of the driver's ABI agree with the toolkit's cuda.h: types, sizes, offsets, values.
 *
 * Compiling is the test. Signatures are held against it in entries_cuda.cpp. */
#include <cuda.h>

#include "driver/abi.h"

#if CUDA_VERSION < 12030
#warning "cuda.h is older than 12.3 and does not name everything: not compared"
#else

/* ---- handles: the very same types, so that pointers to them mix ------------------------------ */

#define SAME(ours, theirs) \
    _Static_assert(__builtin_types_compatible_p(ours, theirs) && sizeof(ours) == sizeof(theirs), #theirs)
SAME(gr_cu_device, CUdevice);
SAME(gr_cu_ptr, CUdeviceptr);
SAME(gr_cu_handle, CUmemGenericAllocationHandle);
SAME(gr_cu_context, CUcontext);
SAME(gr_cu_stream, CUstream);
SAME(gr_cu_event, CUevent);
SAME(gr_cu_graph, CUgraph);
SAME(gr_cu_node, CUgraphNode);
SAME(gr_cu_graph_exec, CUgraphExec);
SAME(gr_cu_host_fn, CUhostFn);

/* Enumerations are passed as int. */
#define AS_INT(theirs) \
    _Static_assert(sizeof(theirs) == sizeof(int) && _Alignof(theirs) == _Alignof(int), #theirs)
AS_INT(CUresult);
AS_INT(CUdevice_attribute);
AS_INT(CUmemAllocationType);
AS_INT(CUmemAllocationHandleType);
AS_INT(CUmemLocationType);
AS_INT(CUmemAccess_flags);
AS_INT(CUmemAllocationGranularity_flags);
AS_INT(CUstreamCaptureStatus);
AS_INT(CUstreamCaptureMode);
AS_INT(CUdriverProcAddressQueryResult);

/* ---- values ----------------------------------------------------------------------------------- */

#define CUDA_ERROR_SUCCESS CUDA_SUCCESS
#define SAME_CODE(name, value) _Static_assert((int)CUDA_ERROR_##name == (value), #name);
GR_CU_RESULT_MAP(SAME_CODE)

#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
EQUAL(GR_CU_ATTR_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED);
EQUAL(GR_CU_ATTR_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
EQUAL(GR_CU_ATTR_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
EQUAL(GR_CU_ATTR_CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(GR_CU_ATTR_CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(GR_CU_ATTR_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
EQUAL(GR_CU_ATTR_HANDLE_POSIX_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
EQUAL(GR_CU_ATTR_GENERIC_COMPRESSION, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED);
EQUAL(GR_CU_ATTR_RDMA_WITH_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
EQUAL(GR_CU_ATTR_HANDLE_FABRIC, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);

EQUAL(GR_CU_MEM_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
EQUAL(GR_CU_HANDLE_NONE, CU_MEM_HANDLE_TYPE_NONE);
EQUAL(GR_CU_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
EQUAL(GR_CU_HANDLE_FABRIC, CU_MEM_HANDLE_TYPE_FABRIC);
EQUAL(GR_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
EQUAL(GR_CU_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
EQUAL(GR_CU_LOCATION_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA);
EQUAL(GR_CU_LOCATION_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
EQUAL(GR_CU_ACCESS_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
EQUAL(GR_CU_ACCESS_READ, CU_MEM_ACCESS_FLAGS_PROT_READ);
EQUAL(GR_CU_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
EQUAL(GR_CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
EQUAL(GR_CU_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
EQUAL(GR_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
EQUAL(GR_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(GR_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
EQUAL(GR_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
EQUAL(GR_CU_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
EQUAL(GR_CU_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
EQUAL(GR_CU_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
EQUAL(GR_CU_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
EQUAL(GR_CU_DEPENDENCIES_ADD, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
EQUAL(GR_CU_DEPENDENCIES_SET, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
EQUAL(GR_CU_EDGE_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
EQUAL(GR_CU_EDGE_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
EQUAL(GR_CU_PROC_DEFAULT, CU_GET_PROC_ADDRESS_DEFAULT);

/* Handles that are numbers. Not constant expressions in C, so compared when they are used. */
int special_streams_agree(void);
int special_streams_agree(void) {
    return GR_CU_STREAM_LEGACY == CU_STREAM_LEGACY && GR_CU_STREAM_PER_THREAD == CU_STREAM_PER_THREAD;
}

/* ---- structs ---------------------------------------------------------------------------------- */

#define STRUCT(ours, theirs)                                                                           \
    _Static_assert(sizeof(struct ours) == sizeof(theirs) && _Alignof(struct ours) == _Alignof(theirs), \
                   #theirs)
#define MEMBER(ours, member, theirs, their_member)                                            \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&         \
                       sizeof((struct ours *)0)->member == sizeof((theirs *)0)->their_member, \
                   #theirs "." #their_member)

STRUCT(gr_cu_location, CUmemLocation);
MEMBER(gr_cu_location, type, CUmemLocation, type);
MEMBER(gr_cu_location, id, CUmemLocation, id);

STRUCT(gr_cu_mem_prop, CUmemAllocationProp);
MEMBER(gr_cu_mem_prop, type, CUmemAllocationProp, type);
MEMBER(gr_cu_mem_prop, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
MEMBER(gr_cu_mem_prop, location, CUmemAllocationProp, location);
MEMBER(gr_cu_mem_prop, win32_meta, CUmemAllocationProp, win32HandleMetaData);
MEMBER(gr_cu_mem_prop, flags, CUmemAllocationProp, allocFlags);
MEMBER(gr_cu_mem_prop, flags.compression_type, CUmemAllocationProp, allocFlags.compressionType);
MEMBER(gr_cu_mem_prop, flags.rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
MEMBER(gr_cu_mem_prop, flags.usage, CUmemAllocationProp, allocFlags.usage);
MEMBER(gr_cu_mem_prop, flags.reserved, CUmemAllocationProp, allocFlags.reserved);

STRUCT(gr_cu_access, CUmemAccessDesc);
MEMBER(gr_cu_access, location, CUmemAccessDesc, location);
MEMBER(gr_cu_access, flags, CUmemAccessDesc, flags);

STRUCT(gr_cu_edge, CUgraphEdgeData);
MEMBER(gr_cu_edge, from_port, CUgraphEdgeData, from_port);
MEMBER(gr_cu_edge, to_port, CUgraphEdgeData, to_port);
MEMBER(gr_cu_edge, type, CUgraphEdgeData, type);
MEMBER(gr_cu_edge, reserved, CUgraphEdgeData, reserved);

#endif

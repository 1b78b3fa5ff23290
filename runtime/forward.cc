// Checks that enumerations and flags which rows of exports.inc forward by number have the same
// numbers in both interfaces: the ends of each list, and where a list has gaps, values around them.
#include "runtime/forward.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {
namespace {

#define SAME(runtime_name, driver_name) \
  static_assert(static_cast<long long>(runtime_name) == static_cast<long long>(driver_name))

// Devices and contexts
SAME(cudaDevAttrMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(cudaDevAttrCooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(cudaDevAttrHostMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED);
SAME(cudaDevP2PAttrPerformanceRank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
SAME(cudaDevP2PAttrCudaArrayAccessSupported, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
SAME(cudaLimitStackSize, CU_LIMIT_STACK_SIZE);
SAME(cudaLimitPersistingL2CacheSize, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME(cudaFuncCachePreferEqual, CU_FUNC_CACHE_PREFER_EQUAL);
SAME(cudaDeviceScheduleBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
SAME(cudaDeviceMapHost, CU_CTX_MAP_HOST);
SAME(cudaDeviceSyncMemops, CU_CTX_SYNC_MEMOPS);

// Kernels
SAME(cudaFuncAttributeMaxDynamicSharedMemorySize, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(cudaFuncAttributeClusterSchedulingPolicyPreference,
     CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME(cudaLaunchAttributeCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(cudaLaunchAttributeNvlinkUtilCentricScheduling,
     CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
SAME(cudaOccupancyDisableCachingOverride, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
SAME(cudaJitMaxRegisters, CU_JIT_MAX_REGISTERS);
SAME(cudaJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
SAME(cudaLibraryHostUniversalFunctionAndDataTable,
     CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE);
SAME(cudaLibraryBinaryIsPreserved, CU_LIBRARY_BINARY_IS_PRESERVED);

// Memory
SAME(cudaHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME(cudaHostAllocMapped, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(cudaHostAllocWriteCombined, CU_MEMHOSTALLOC_WRITECOMBINED);
SAME(cudaHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(cudaHostRegisterMapped, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(cudaHostRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY);
SAME(cudaMemAttachGlobal, CU_MEM_ATTACH_GLOBAL);
SAME(cudaMemAttachSingle, CU_MEM_ATTACH_SINGLE);
SAME(cudaMemAdviseSetReadMostly, CU_MEM_ADVISE_SET_READ_MOSTLY);
SAME(cudaMemAdviseUnsetAccessedBy, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME(cudaMemRangeAttributeReadMostly, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
SAME(cudaMemRangeAttributeLastPrefetchLocationId, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
SAME(cudaMemPoolReuseFollowEventDependencies, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME(cudaMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(cudaMemLocationTypeHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME(cudaMemAccessFlagsProtReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(cudaMemAllocationTypeManaged, CU_MEM_ALLOCATION_TYPE_MANAGED);
SAME(cudaMemHandleTypePosixFileDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(cudaMemcpySrcAccessOrderAny, CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
SAME(cudaIpcMemLazyEnablePeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(cudaArraySurfaceLoadStore, CUDA_ARRAY3D_SURFACE_LDST);
SAME(cudaArrayTextureGather, CUDA_ARRAY3D_TEXTURE_GATHER);

// Streams, events, capture
SAME(cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(cudaEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
SAME(cudaEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(cudaEventInterprocess, CU_EVENT_INTERPROCESS);
SAME(cudaEventRecordExternal, CU_EVENT_RECORD_EXTERNAL);
SAME(cudaEventWaitExternal, CU_EVENT_WAIT_EXTERNAL);
SAME(cudaStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(cudaStreamCaptureStatusInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(cudaStreamSetCaptureDependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES);

// Graphs
SAME(cudaGraphNodeTypeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
SAME(cudaGraphNodeTypeConditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(cudaGraphInstantiateFlagAutoFreeOnLaunch, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
SAME(cudaGraphInstantiateFlagUseNodePriority, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
SAME(cudaGraphInstantiateMultipleDevicesNotSupported,
     CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
SAME(cudaGraphExecUpdateErrorAttributesChanged, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
SAME(cudaGraphUserObjectMove, CU_GRAPH_USER_OBJECT_MOVE);
SAME(cudaUserObjectNoDestructorSync, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
SAME(cudaGraphDebugDotFlagsVerbose, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
SAME(cudaGraphMemAttrReservedMemHigh, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);

// Textures, entry points
SAME(cudaAddressModeBorder, CU_TR_ADDRESS_MODE_BORDER);
SAME(cudaFilterModeLinear, CU_TR_FILTER_MODE_LINEAR);
SAME(cudaResViewFormatUnsignedBlockCompressed7, CU_RES_VIEW_FORMAT_UNSIGNED_BC7);
SAME(cudaEnablePerThreadDefaultStream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(cudaDriverEntryPointVersionNotSufficent, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

#undef SAME

}  // namespace
}  // namespace runtime

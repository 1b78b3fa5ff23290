#include "softgpu/driver/refusals.h"

#include <algorithm>
#include <iterator>

namespace softgpu {
namespace {

// The first row whose prefix fits. Versions before CUDA 3.2 are what is left of the memory calls.
struct Refusal {
  std::string_view prefix, reason;
};

constexpr Refusal kRefusals[] = {
    {"cuIpc", "memory and events belong to their process; share cuMemCreate's handles instead"},
    {"cuMemPoolExport", "pools belong to their process; share cuMemCreate's handles instead"},
    {"cuMemPoolImport", "pools belong to their process; share cuMemCreate's handles instead"},
    {"cuMemGetHandleForAddressRange", "share cuMemCreate's handles instead"},
    {"cuMulticast", "the device has no multicast"},
    {"cuTexRef", "references to textures are gone from CUDA; use objects"},
    {"cuSurfRef", "references to surfaces are gone from CUDA; use objects"},
    {"cuModuleGetTexRef", "references to textures are gone from CUDA; use objects"},
    {"cuModuleGetSurfRef", "references to surfaces are gone from CUDA; use objects"},
    {"cuArrayGetSparse", "the device has no sparse arrays"},
    {"cuMipmappedArrayGetSparse", "the device has no sparse arrays"},
    {"cuMemMapArray", "the device has no sparse arrays"},
    {"cuMemcpy3DBatch", "use cuMemcpy3DAsync"},
    {"cuMemBatchDecompress", "the device has no decompression engine"},
    {"cuTensorMap", "tensor maps need compute capability 9.0's copies"},
    {"cuGraphics", "the device draws nothing"},
    {"cuImportExternal", "there is no other interface to share with"},
    {"cuExternalMemory", "there is no other interface to share with"},
    {"cuDestroyExternal", "there is no other interface to share with"},
    {"cuSignalExternal", "there is no other interface to share with"},
    {"cuWaitExternal", "there is no other interface to share with"},
    {"cuGraphAddExternal", "there is no other interface to share with"},
    {"cuGraphExecExternal", "there is no other interface to share with"},
    {"cuGraphExternal", "there is no other interface to share with"},
    {"cuDeviceGetNvSciSync", "there is no other interface to share with"},
    {"cuGreenCtx", "the device's processors can't be parted"},
    {"cuCtxFromGreenCtx", "the device's processors can't be parted"},
    {"cuCtxGetDevResource", "the device's processors can't be parted"},
    {"cuDeviceGetDevResource", "the device's processors can't be parted"},
    {"cuDevResource", "the device's processors can't be parted"},
    {"cuDevSmResource", "the device's processors can't be parted"},
    {"cuCheckpoint", "a process can't be checkpointed"},
    {"cuCoredump", "the device dumps no core; a fault names its thread and line"},
    {"cuDeviceRegisterAsync", "the device has nothing to notify of"},
    {"cuDeviceUnregisterAsync", "the device has nothing to notify of"},
    {"cuLibraryGetUnifiedFunction", "functions are not shared between host and device"},
    {"cuLaunchCooperativeKernelMultiDevice", "a grid runs on one device"},
    {"cuParamSetTexRef", "references to textures are gone from CUDA; use objects"},
};

}  // namespace

std::string_view RefusalReason(std::string_view call) {
  const Refusal* const row =
      std::find_if(std::begin(kRefusals), std::end(kRefusals),
                   [call](const Refusal& refusal) { return call.starts_with(refusal.prefix); });
  return row != std::end(kRefusals) ? row->reason
                                    : "32-bit sizes and addresses, as before CUDA 3.2";
}

}  // namespace softgpu

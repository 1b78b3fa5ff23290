// Memory for other programs.
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/shared_memory.h"
#include "shim/state.h"

namespace local {

using shim::SharedMemory;
using shim::State;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  shim::Allocation found;
  if (handle == nullptr || !State::Process().allocations.Find(address, &found))
    return CUDA_ERROR_INVALID_VALUE;
  return SharedMemory::Process().Name(found, handle);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  shim::Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t opened = 0;
  const CUresult result = SharedMemory::Process().Open(*context, value, handle, &opened);
  if (result == CUDA_SUCCESS) *address = opened;
  return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return local::cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return SharedMemory::Process().Close(address);
}

}  // namespace local

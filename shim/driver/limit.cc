// What CUDA lets a program set for its whole context: per session here, so it is kept, and where a
// shared device can't give it, it is only remembered.
#include <algorithm>
#include <array>
#include <mutex>

#include "shim/driver/local.h"
#include "shim/function_lookup.h"
#include "shim/send.h"
#include "shim/state.h"

namespace local {
namespace {

using shim::Context;
using shim::State;

struct Settings {
  std::mutex mutex;
  std::array<size_t, CU_LIMIT_MAX> limit = {};
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig banks = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;

  Settings() {
    limit[CU_LIMIT_STACK_SIZE] = 1024;
    limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
    limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
    limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  }
};

Settings& TheSettings() {
  static Settings* const settings = new Settings;
  return *settings;
}

CUresult Current() {
  Context* context = nullptr;
  return State::Process().Current(&context);
}

}  // namespace

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  TheSettings().limit[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  *value = TheSettings().limit[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  *config = TheSettings().cache;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  TheSettings().cache = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  *config = TheSettings().banks;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  const std::lock_guard<std::mutex> lock(TheSettings().mutex);
  TheSettings().banks = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() { return Current(); }

// No two sessions' devices reach each other's memory, nor do two devices of one session.
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool known = State::Process().contexts.Find(reinterpret_cast<uint64_t>(peer)) != nullptr;
  return known ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxDisablePeerAccess(CUcontext) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

// --- the block size with the most resident threads, by asking the device for each candidate -----

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid_min, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of_block,
                                                   size_t shared_bytes, int block_limit,
                                                   unsigned flags) {
  Context* context = nullptr;
  shim::Function* found = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = shim::FindFunction(function, &found, &value); result != CUDA_SUCCESS)
    return result;
  if (grid_min == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int multiprocessors = 0, warp = 0;
  CUdevice mine = 0;
  if (const CUresult result = local::cuCtxGetDevice(&mine); result != CUDA_SUCCESS) return result;
  local::cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, mine);
  local::cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, mine);
  int block_max = found->info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
  if (block_limit > 0) block_max = std::min(block_max, block_limit);
  int best_threads = 0;
  *block = 0;
  for (int size = block_max; size > 0; size = (size - 1) / std::max(warp, 1) * std::max(warp, 1)) {
    const size_t shared = shared_of_block != nullptr ? shared_of_block(size) : shared_bytes;
    int blocks = 0;
    const CUresult result =
        shim::Call<ipc::Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(
            found->wire, &blocks, reinterpret_cast<CUfunction>(value), size, shared, flags);
    if (result != CUDA_SUCCESS) return result;
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid_min = blocks * multiprocessors;
  }
  return *block != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid_min, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t shared_bytes,
                                          int block_limit) {
  return local::cuOccupancyMaxPotentialBlockSizeWithFlags(
      grid_min, block, function, shared_of_block, shared_bytes, block_limit, CU_OCCUPANCY_DEFAULT);
}

}  // namespace local

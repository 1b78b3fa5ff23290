// Occupancy: asked of the device. A kernel may stand for its function everywhere.
#include <algorithm>

#include "shim/driver/local.h"
#include "shim/function_lookup.h"
#include "shim/send.h"

namespace local {
namespace {

using shim::Context;
using shim::State;

CUresult Ask(CUfunction program, int* blocks, int block_threads, size_t shared_bytes,
             unsigned flags) {
  shim::Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = shim::FindFunction(program, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (blocks == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return shim::Call<ipc::Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(
      function->wire, blocks, reinterpret_cast<CUfunction>(value), block_threads, shared_bytes,
      flags);
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction program,
                                                              int block_threads,
                                                              size_t shared_bytes, unsigned flags) {
  return Ask(program, blocks, block_threads, shared_bytes, flags);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction program,
                                                     int block_threads, size_t shared_bytes) {
  return Ask(program, blocks, block_threads, shared_bytes, CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction program, int blocks,
                                                 int block_threads) {
  shim::Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = shim::FindFunction(program, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return shim::Call<ipc::Op::cuOccupancyAvailableDynamicSMemPerBlock>(
      function->wire, bytes, reinterpret_cast<CUfunction>(value), blocks, block_threads);
}

// --- the block size with the most resident threads, by asking the device for each candidate -----

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid_min, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of_block,
                                                   size_t shared_bytes, int block_limit,
                                                   unsigned flags) {
  Context* context = nullptr;
  shim::Function* found = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = shim::FindFunction(function, &found); result != CUDA_SUCCESS)
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
    if (const CUresult result = Ask(function, &blocks, size, shared, flags); result != CUDA_SUCCESS)
      return result;
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

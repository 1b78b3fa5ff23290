#include "shim/pinned_ranges.h"

#include "shim/pinned_window.h"
#include "shim/send.h"

namespace shim {

// The driver may still have what lay in a place before, as long as others work (600): then another
// place is taken.
CUresult MapPinned(uint32_t wire, size_t bytes, unsigned flags, uint64_t* base) {
  std::vector<PinnedSpare::Range> later;
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY) {
    size_t taken = 0;
    result = PinnedWindow::Process().Take(bytes, base, &taken);
    if (result != CUDA_SUCCESS) break;
    result = Call<ipc::Op::PinnedAlloc>(wire, static_cast<CUdeviceptr>(*base), taken, flags);
    if (result != CUDA_SUCCESS) later.push_back({*base, taken});
  }
  for (const PinnedSpare::Range& range : later)
    PinnedWindow::Process().Give(range.address, range.bytes);
  return result;
}

CUresult UnmapPinned(uint32_t wire, const std::vector<PinnedSpare::Range>& ranges) {
  CUresult result = CUDA_SUCCESS;
  for (const PinnedSpare::Range& range : ranges) {
    const CUresult unmapped =
        Call<ipc::Op::PinnedFree>(wire, static_cast<CUdeviceptr>(range.address));
    if (unmapped == CUDA_SUCCESS) PinnedWindow::Process().Give(range.address, range.bytes);
    if (result == CUDA_SUCCESS) result = unmapped;
  }
  return result;
}

}  // namespace shim

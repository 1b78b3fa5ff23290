#include "tests/protocol/sim_ranges.h"

#include <utility>
#include <vector>

namespace protocol {

SimRanges::SimRanges(const worker::Environment* environment, Program* program,
                     const ipc::control::SessionRecord& record)
    : environment_(*environment),
      program_(program),
      session_(record.session_id),
      base_(SlotAddress(record.slot)) {}

CUresult SimRanges::Map(uint64_t address, uint64_t bytes) {
  worker::ExtentRecord wanted;
  wanted.owner = {worker::OwnerKind::kSession, session_};
  wanted.bytes = bytes;
  wanted.address = wanted.range = address;
  wanted.uid = 1000;
  worker::Extent extent;
  const CUresult result = environment_.extents->Create(wanted, &extent);
  if (result != CUDA_SUCCESS) return result;
  (void)worker::MapExtent(environment_, 0, base_ + address, extent);
  ranges_[address] = extent;
  bytes_ += bytes;
  return CUDA_SUCCESS;
}

uint64_t SimRanges::Unmap(uint64_t address) {
  const worker::Extent extent = ranges_.at(address);
  ranges_.erase(address);
  worker::FreePieces(environment_, {{base_ + address, extent}});
  bytes_ -= extent.bytes;
  return extent.bytes;
}

void SimRanges::UnmapAll() {
  while (!ranges_.empty()) Unmap(ranges_.begin()->first);
}

void SimRanges::DropAll() {
  for (const std::pair<const uint64_t, worker::Extent>& range : ranges_)
    worker::DropPieces(environment_, {{base_ + range.first, range.second}});
  ranges_.clear();
  bytes_ = 0;
}

CUresult SimRanges::Restore() {
  std::vector<worker::ExtentRecord> records;
  CUresult result = environment_.extents->List({worker::OwnerKind::kSession, session_}, &records);
  for (const worker::ExtentRecord& record : records) {
    worker::Extent extent;
    if (result == CUDA_SUCCESS) result = environment_.extents->Import(record, &extent);
    if (result != CUDA_SUCCESS) continue;
    if (program_->swapped().held) {  // about to go, or made for its way back
      environment_.extents->Free(extent);
      continue;
    }
    (void)worker::MapExtent(environment_, 0, base_ + record.address, extent);
    ranges_[record.address] = extent;
    bytes_ += extent.bytes;
  }
  return result;
}

void SimRanges::SwapOut(bool with_lane) {
  Swapped swapped{true, with_lane, {}};
  for (const std::pair<const uint64_t, worker::Extent>& range : ranges_)
    swapped.ranges.push_back({range.first, range.second.bytes});
  program_->SetOnHost(std::move(swapped));
  UnmapAll();
}

CUresult SimRanges::SwapIn() {
  for (const std::pair<uint64_t, uint64_t>& range : program_->swapped().ranges) {
    const CUresult result = Map(range.first, range.second);
    if (result == CUDA_SUCCESS) continue;
    UnmapAll();
    return result;
  }
  program_->SetOnHost({});
  return CUDA_SUCCESS;
}

}  // namespace protocol

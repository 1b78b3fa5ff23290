// An arena's memory on the move: to the host and back, to another worker, and its end.
#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/arena.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

}  // namespace

// --- to the host and back ------------------------------------------------------------------------

absl::Status Arena::Save(Kind kind, int device, CUdeviceptr address, uint64_t bytes,
                         std::vector<Swapped>* saved) {
  absl::StatusOr<HostMemory> memory = HostMemory::Create(environment_.swap, bytes);
  if (!memory.ok()) return memory.status();
  ChunkedCopy copy(environment_, device);
  const CUresult result = copy.Out(address, bytes, memory->data());
  if (result != CUDA_SUCCESS) {
    return absl::InternalError(
        absl::StrCat("copying a session's memory to the host failed (error ", result, ")"));
  }
  saved->push_back({kind, address, device, std::move(*memory)});
  return absl::OkStatus();
}

absl::Status Arena::SaveAll(bool with_lane, std::vector<Swapped>* saved) {
  for (const Ranges::value_type& range : ranges_) {
    if (IsOwn(range.first)) continue;  // scratch, and little of it
    const absl::Status status =
        Save(Kind::kRange, range.second.device, range.first, BytesOf(range.second.pieces), saved);
    if (!status.ok()) return status;
  }
  if (lanes() == nullptr) return absl::OkStatus();
  const int device = lane_member_.device();
  for (const LaneTable::KeptExtent& kept : lanes()->Kept(&lane_member_)) {
    const absl::Status status =
        Save(Kind::kKept, device, kept.piece.address, kept.piece.extent.bytes, saved);
    if (!status.ok()) return status;
  }
  if (!with_lane) return absl::OkStatus();
  for (const Piece& part : lanes()->Mapped(&lane_member_)) {
    const absl::Status status = Save(Kind::kLane, device, part.address, part.extent.bytes, saved);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Arena::SwapOut(bool with_lane) {
  assert(!swapped());
  if (environment_.swap == nullptr) return absl::FailedPreconditionError("there is no swap space");
  std::vector<Swapped> saved;
  const absl::Status status = SaveAll(with_lane, &saved);
  if (!status.ok()) return status;
  for (const Swapped& item : saved) {
    if (item.kind == Kind::kRange) {
      const Ranges::iterator range = ranges_.find(item.address);
      FreePieces(environment_, range->second.pieces);
      ranges_.erase(range);
      bytes_.fetch_sub(item.memory.bytes(), std::memory_order_relaxed);
    }
  }
  if (lanes() != nullptr) {
    for (const LaneTable::KeptExtent& kept : lanes()->Kept(&lane_member_)) {
      FreePieces(environment_, {kept.piece});
      lanes()->SetKept(&lane_member_, kept.piece.address, {0, kept.piece.extent.bytes});
    }
  }
  swapped_ = std::move(saved);
  return absl::OkStatus();
}

// All of it, or nothing: a session that is half there could not run either.
CUresult Arena::BackSwapped(std::vector<Range>* backed) {
  for (const Swapped& item : swapped_) {
    Range range{item.device, {}};
    CUresult result = CUDA_SUCCESS;
    if (item.kind != Kind::kLane) {
      result = Back(environment_, RecordAt(item.device, item.address), item.memory.bytes(),
                    limits::kExtentBytesMax, &range.pieces);
    }
    if (result != CUDA_SUCCESS) {
      for (const Range& made : *backed) FreePieces(environment_, made.pieces);
      backed->clear();
      return result;
    }
    backed->push_back(std::move(range));
  }
  return CUDA_SUCCESS;
}

CUresult Arena::SwapIn() {
  std::vector<Range> backed;
  CUresult result = BackSwapped(&backed);
  if (result != CUDA_SUCCESS) return result;
  for (const Swapped& item : swapped_) {
    ChunkedCopy copy(environment_, item.device);
    if (result == CUDA_SUCCESS) {
      result = copy.In(item.memory.data(), item.memory.bytes(), item.address);
    }
  }
  if (result != CUDA_SUCCESS) {
    for (const Range& made : backed) FreePieces(environment_, made.pieces);
    return result;
  }
  for (size_t i = 0; i < swapped_.size(); ++i) {
    const Swapped& item = swapped_[i];
    if (item.kind == Kind::kRange) {
      ranges_.emplace(item.address, std::move(backed[i]));
      bytes_.fetch_add(item.memory.bytes(), std::memory_order_relaxed);
    } else if (item.kind == Kind::kKept) {
      assert(backed[i].pieces.size() == 1);  // it was one extent
      lanes()->SetKept(&lane_member_, item.address, backed[i].pieces[0].extent);
    }
  }
  swapped_.clear();
  return CUDA_SUCCESS;
}

void Arena::DropSwapped() {
  for (const Swapped& item : swapped_) {
    if (item.kind == Kind::kRange) tenant_.job->Give(item.device, item.memory.bytes());
  }
  swapped_.clear();
}

// --- to another worker ---------------------------------------------------------------------------

CUresult Arena::Restore() {
  assert(ranges_.empty() && !swapped());
  std::vector<ExtentRecord> records;
  CUresult result = environment_.extents->List({OwnerKind::kSession, tenant_.session_id}, &records);
  if (result != CUDA_SUCCESS) return result;
  std::vector<Piece> pieces;
  result = BackAgain(environment_, records, &pieces);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < records.size(); ++i) {
    const ExtentRecord& record = records[i];
    const int device = static_cast<int>(record.device);
    if (IsOwn(record.address)) {  // its library handles are made anew, with workspaces of their own
      FreePieces(environment_, {pieces[i]});
    } else if (record.address >= ephemeral_base()) {
      lanes()->AddKept(&lane_member_, device, pieces[i]);
    } else {
      Range& range = ranges_[record.range];
      range.device = device;
      range.pieces.push_back(pieces[i]);
      tenant_.job->Force(device, record.bytes);
      bytes_.fetch_add(record.bytes, std::memory_order_relaxed);
    }
  }
  return CUDA_SUCCESS;
}

void Arena::Detach() {
  assert(!swapped());
  for (const Ranges::value_type& range : ranges_) {
    DropPieces(environment_, range.second.pieces);
    tenant_.job->Give(range.second.device, BytesOf(range.second.pieces));
    if (IsOwn(range.first)) own_addresses_.Give(range.first, BytesOf(range.second.pieces));
  }
  ranges_.clear();
  bytes_.store(0, std::memory_order_relaxed);
  if (lanes() == nullptr) return;
  for (const LaneTable::KeptExtent& kept : lanes()->Kept(&lane_member_)) {
    DropPieces(environment_, {kept.piece});
  }
  lanes()->ForgetKept(&lane_member_);
  lanes()->Leave(&lane_member_, true);
}

void Arena::Clear() {
  DropSwapped();
  while (!ranges_.empty()) RemoveRange(ranges_.begin());
  if (lanes() == nullptr) return;
  for (const LaneTable::KeptExtent& kept : lanes()->Kept(&lane_member_)) {
    if (kept.piece.extent.id != 0) FreePieces(environment_, {kept.piece});
  }
  lanes()->ForgetKept(&lane_member_);
  lanes()->Leave(&lane_member_);
}

}  // namespace worker

// An arena's memory on the move: to other addresses, to the host and back, to another worker, and
// its end.
#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/arena.h"

namespace worker {
namespace {

using common::SwapRecord;

namespace limits = ipc::limits;

bool Holds(const SwapFile& file, CUdeviceptr address) {
  return std::any_of(file.records().begin(), file.records().end(),
                     [address](const SwapRecord& record) {
                       return address >= record.address && address - record.address < record.bytes;
                     });
}

}  // namespace

// --- to other addresses --------------------------------------------------------------------------

// All of it is mapped anew before anything is unmapped, so that an error changes nothing.
CUresult Arena::Move(CUdeviceptr from, CUdeviceptr to) {
  assert(!swapped());
  const Ranges::iterator found = ranges_.find(from);
  if (found == ranges_.end() || found->second.shared != nullptr ||
      !IsPlace(to, BytesOf(found->second.pieces)))
    return CUDA_ERROR_INVALID_VALUE;
  const int device = found->second.device;
  Range moved{device, {}};
  for (const Piece& piece : found->second.pieces) {
    const Piece there{to + (piece.address - from), piece.extent};
    const CUresult result = MapExtent(environment_, device, there.address, there.extent);
    if (result != CUDA_SUCCESS) {
      for (const Piece& mapped : moved.pieces) Unmap(environment_, mapped);
      return result;
    }
    moved.pieces.push_back(there);
  }
  const ExtentRecord record = RecordAt(device, to);
  for (const Piece& piece : found->second.pieces) Unmap(environment_, piece);
  for (const Piece& piece : moved.pieces)
    environment_.extents->ChangeOwner(piece.extent, record.owner, piece.address, to);
  ranges_.erase(found);
  ranges_.emplace(to, std::move(moved));
  return CUDA_SUCCESS;
}

// --- to the host and back ------------------------------------------------------------------------

// Workspaces of libraries go without their bytes: no call of a library is under way, and the next
// one writes before it reads.
std::vector<SwapRecord> Arena::WhatGoes(bool with_lane) {
  std::vector<SwapRecord> records;
  for (const Ranges::value_type& range : ranges_) {
    if (IsWorkersPart(range.first - base_)) continue;
    records.push_back({range.first, BytesOf(range.second.pieces),
                       static_cast<uint32_t>(range.second.device), kRange});
  }
  if (lanes() == nullptr) return records;
  const uint32_t device = static_cast<uint32_t>(lane_member_.device());
  for (const Piece& kept : lanes()->Kept(&lane_member_))
    records.push_back({kept.address, kept.extent.bytes, device, kKept});
  if (!with_lane) return records;
  for (const Piece& part : lanes()->Mapped(&lane_member_))
    records.push_back({part.address, part.extent.bytes, device, kLane});
  return records;
}

absl::Status Arena::SwapOut(bool with_lane) {
  assert(!swapped());
  if (environment_.swap == nullptr) return absl::FailedPreconditionError("there is no swap space");
  std::vector<SwapRecord> records = WhatGoes(with_lane);
  if (!records.empty()) {
    const absl::Status saved = Save(std::move(records));
    if (!saved.ok()) return saved;
  }
  for (const Ranges::value_type& range : ranges_) {
    FreePieces(environment_, range.second.pieces);
    const uint64_t bytes = BytesOf(range.second.pieces);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    if (IsWorkersPart(range.first - base_)) scratch_[range.first] = {range.second.device, bytes};
  }
  ranges_.clear();
  if (lanes() == nullptr) return absl::OkStatus();
  for (const Piece& kept : lanes()->Kept(&lane_member_)) {
    FreePieces(environment_, {kept});
    lanes()->SetKept(&lane_member_, kept.address, {0, kept.extent.bytes});
  }
  return absl::OkStatus();
}

absl::Status Arena::Save(std::vector<SwapRecord> records) {
  const absl::Status begun = swap_file_.Begin(environment_.swap, std::move(records));
  if (!begun.ok()) return begun;
  for (size_t i = 0; i < swap_file_.records().size(); ++i) {
    const SwapRecord& record = swap_file_.records()[i];
    ChunkedCopy copy(environment_, static_cast<int>(record.device));
    const CUresult result = copy.Out(record.address, record.bytes, swap_file_.BytesOf(i));
    if (result == CUDA_SUCCESS) continue;
    swap_file_.Clear();
    return absl::InternalError(
        absl::StrCat("copying a session's memory to the host failed (error ", result, ")"));
  }
  // Before the extents go: when the worker is lost here, its successor finds both.
  swap_file_.Commit();
  return absl::OkStatus();
}

CUresult Arena::BackSwapped(Ranges* backed) {
  const auto back = [this, backed](CUdeviceptr address, int device, uint64_t bytes) {
    Range& range = (*backed)[address];
    range.device = device;
    return Back(environment_, RecordAt(device, address), bytes, limits::kExtentBytesMax,
                &range.pieces);
  };
  CUresult result = CUDA_SUCCESS;
  for (const SwapRecord& record : swap_file_.records()) {
    if (record.kind != kLane && result == CUDA_SUCCESS)
      result = back(record.address, static_cast<int>(record.device), record.bytes);
  }
  for (const std::pair<const CUdeviceptr, Scratch>& away : scratch_) {
    if (result == CUDA_SUCCESS) result = back(away.first, away.second.device, away.second.bytes);
  }
  return result;
}

// All of it, or nothing: a session that is half there could not run either.
CUresult Arena::SwapIn() {
  const std::vector<SwapRecord>& records = swap_file_.records();
  Ranges backed;
  CUresult result = BackSwapped(&backed);
  for (size_t i = 0; i < records.size() && result == CUDA_SUCCESS; ++i) {
    ChunkedCopy copy(environment_, static_cast<int>(records[i].device));
    result = copy.In(swap_file_.BytesOf(i), records[i].bytes, records[i].address);
  }
  if (result != CUDA_SUCCESS) {
    for (const Ranges::value_type& made : backed) FreePieces(environment_, made.second.pieces);
    return result;
  }
  for (const SwapRecord& record : records) {
    if (record.kind != kKept) continue;
    const Ranges::iterator kept = backed.find(record.address);
    assert(kept->second.pieces.size() == 1);  // it was one extent
    lanes()->SetKept(&lane_member_, record.address, kept->second.pieces[0].extent);
    backed.erase(kept);
  }
  for (const Ranges::value_type& range : backed)
    bytes_.fetch_add(BytesOf(range.second.pieces), std::memory_order_relaxed);
  ranges_.merge(backed);
  scratch_.clear();
  swap_file_.Clear();
  return CUDA_SUCCESS;
}

void Arena::FreeScratch(std::map<CUdeviceptr, Scratch>::iterator scratch) {
  tenant_.job->Give(scratch->second.device, scratch->second.bytes);
  own_addresses_.Give(scratch->first, scratch->second.bytes);
  scratch_.erase(scratch);
}

void Arena::CountSwapped(void (JobMemory::*count)(int device, uint64_t bytes)) {
  for (const SwapRecord& record : swap_file_.records()) {
    if (record.kind == kRange)
      (tenant_.job.get()->*count)(static_cast<int>(record.device), record.bytes);
  }
}

// --- to another worker ---------------------------------------------------------------------------

// The swap file counts: extents in its place were about to go, or made for its way back.
CUresult Arena::RestoreExtents(std::vector<ExtentRecord>* records, std::vector<Piece>* pieces) {
  CUresult result = environment_.extents->List({OwnerKind::kSession, tenant_.session_id}, records);
  if (result != CUDA_SUCCESS) return result;
  std::erase_if(*records, [this](const ExtentRecord& record) {
    if (!Holds(swap_file_, record.address)) return false;
    Extent stale;
    if (environment_.extents->Import(record, &stale) == CUDA_SUCCESS)
      environment_.extents->Free(stale);
    return true;
  });
  return BackAgain(environment_, *records, pieces);
}

CUresult Arena::Restore() {
  assert(ranges_.empty() && !swapped());
  if (environment_.swap != nullptr && !swap_file_.Open(environment_.swap).ok())
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::vector<ExtentRecord> records;
  std::vector<Piece> pieces;
  const CUresult result = RestoreExtents(&records, &pieces);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < records.size(); ++i) {
    const ExtentRecord& record = records[i];
    const int device = static_cast<int>(record.device);
    if (IsWorkersPart(record.address -
                      base_)) {  // its library handles are made anew, with workspaces of their own
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
  CountSwapped(&JobMemory::Force);
  for (const SwapRecord& record : swap_file_.records()) {
    if (record.kind == kKept)
      lanes()->AddKept(&lane_member_, static_cast<int>(record.device),
                       {record.address, {0, record.bytes}});
  }
  return CUDA_SUCCESS;
}

// The extents stay the session's at the keeper, where the next worker finds them. Here they no
// longer count: the job's books are this worker's. Shared ranges stay behind: a session that has
// any comes here only when its client has hidden that.
void Arena::Detach() {
  for (Ranges::iterator range = ranges_.begin(); range != ranges_.end();) {
    const Ranges::iterator here = range++;
    if (here->second.shared != nullptr) RemoveRange(here);
  }
  for (const Ranges::value_type& range : ranges_) {
    DropPieces(environment_, range.second.pieces);
    tenant_.job->Give(range.second.device, BytesOf(range.second.pieces));
    if (IsWorkersPart(range.first - base_))
      own_addresses_.Give(range.first, BytesOf(range.second.pieces));
  }
  ranges_.clear();
  bytes_.store(0, std::memory_order_relaxed);
  CountSwapped(&JobMemory::Give);
  while (!scratch_.empty()) FreeScratch(scratch_.begin());
  swap_file_.Leave();
  if (lanes() == nullptr) return;
  for (const Piece& kept : lanes()->Kept(&lane_member_)) {
    if (kept.extent.id != 0) DropPieces(environment_, {kept});
  }
  lanes()->ForgetKept(&lane_member_);
  lanes()->Leave(&lane_member_, true);
}

void Arena::Clear() {
  CountSwapped(&JobMemory::Give);
  while (!scratch_.empty()) FreeScratch(scratch_.begin());
  swap_file_.Clear();
  while (!ranges_.empty()) RemoveRange(ranges_.begin());
  if (lanes() == nullptr) return;
  for (const Piece& kept : lanes()->Kept(&lane_member_)) {
    if (kept.extent.id != 0) FreePieces(environment_, {kept});
  }
  lanes()->ForgetKept(&lane_member_);
  lanes()->Leave(&lane_member_);
}

}  // namespace worker

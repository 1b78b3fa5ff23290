// Lanes: blocks that outlive their iteration, and the extents that their sessions keep.
#include <cassert>
#include <utility>

#include "daemon/worker/lane.h"
#include "daemon/worker/lanes.h"

namespace worker {

// --- blocks --------------------------------------------------------------------------------------

bool LaneTable::InLane(const LaneMember& member, CUdeviceptr address, uint64_t bytes) const {
  return member.lane_ != nullptr && member.lane_->Contains(address - member.base_, bytes);
}

// Outside, what lies in the lane is another's.
bool LaneTable::MayKeep(const LaneMember& member) const {
  return member.lane_->own() || member.lane_->holder.load() == &member;
}

uint64_t LaneTable::FreshBytesFor(LaneMember* member, CUdeviceptr address, uint64_t bytes) {
  const MemberLock lock(member);
  if (!InLane(*member, address, bytes) || member->lane_->own() || !MayKeep(*member)) return 0;
  const Lane* const lane = member->lane_.get();
  lane->mutex.AssertHeld();
  const uint64_t offset = address - member->base_;
  uint64_t sum = 0;
  for (const Piece& part : lane->parts) {
    const bool touched = part.address < offset + bytes && part.address + part.extent.bytes > offset;
    if (touched && !member->books_.Keeps(part.address, part.extent.bytes)) sum += part.extent.bytes;
  }
  return sum;
}

CUresult LaneTable::Keep(LaneMember* member, CUdeviceptr address, uint64_t bytes) {
  const MemberLock lock(member);
  const uint64_t offset = address - member->base_;
  if (bytes != 0 && member->books_.KeptBytes(offset, bytes) == bytes) {  // of the session already
    member->books_.AddBlock(offset, bytes);
    return CUDA_SUCCESS;
  }
  if (!InLane(*member, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!MayKeep(*member)) return CUDA_ERROR_ILLEGAL_STATE;
  // No other session ever maps a lane of its own.
  const bool own = member->lane_->own();
  const CUresult result =
      own ? CUDA_SUCCESS : member->lane_->TakeOut(member, offset, offset + bytes);
  if (own || result != CUDA_SUCCESS) {
    member->books_.Pin(offset, bytes);
  } else {
    member->books_.AddBlock(offset, bytes);
  }
  return result;
}

CUresult LaneTable::Pin(LaneMember* member, CUdeviceptr address, uint64_t bytes) {
  const MemberLock lock(member);
  if (!InLane(*member, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!MayKeep(*member)) return CUDA_ERROR_ILLEGAL_STATE;
  member->books_.Pin(address - member->base_, bytes);
  return CUDA_SUCCESS;
}

bool LaneTable::Drop(LaneMember* member, CUdeviceptr address) {
  const MemberLock lock(member);
  return member->books_.Drop(address - member->base_);
}

bool LaneTable::Pinned(LaneMember* member) {
  const MemberLock lock(member);
  return member->books_.is_pinned();
}

uint64_t LaneTable::Reclaim(LaneMember* member) {
  const MemberLock lock(member);
  Lane* const lane = member->lane_.get();
  std::vector<Piece> parts;
  if (lane != nullptr) {
    lane->mutex.AssertHeld();
    parts = lane->parts;
  }
  uint64_t bytes = 0;
  for (const Piece& spare : member->books_.TakeSpares(parts)) {
    FreePieces(environment_, {{member->base_ + spare.address, spare.extent}});
    member->job_->Give(member->device_, spare.extent.bytes);
    bytes += spare.extent.bytes;
  }
  // When the mapping fails the member leaves the lane, for a block could come to lie in the hole.
  // Enter maps what is missing.
  if (lane != nullptr && lane->Map(member) != CUDA_SUCCESS) Exit(member);
  return bytes;
}

// --- to the host and to other workers ------------------------------------------------------------

std::vector<Piece> LaneTable::Kept(LaneMember* member) {
  const MemberLock lock(member);
  std::vector<Piece> list;
  for (const std::pair<const uint64_t, LaneBooks::Kept>& kept : member->books_.kept())
    list.push_back({member->base_ + kept.first, kept.second.extent});
  return list;
}

void LaneTable::SetKept(LaneMember* member, CUdeviceptr address, const Extent& extent) {
  const MemberLock lock(member);
  member->books_.Replace(address - member->base_, extent);
  if (member->lane_ != nullptr) member->CountMapped();
}

void LaneTable::AddKept(LaneMember* member, int device, const Piece& piece) {
  const MemberLock lock(member);
  member->job_->Force(device, piece.extent.bytes);
  member->device_ = device;
  member->books_.Keep(piece.address - member->base_, piece.extent);
  member->CountMapped();
}

void LaneTable::ForgetKept(LaneMember* member) {
  const MemberLock lock(member);
  for (const std::pair<const uint64_t, LaneBooks::Kept>& kept : member->books_.kept())
    member->job_->Give(member->device_, kept.second.extent.bytes);
  member->books_.Clear();
}

std::vector<Piece> LaneTable::Mapped(LaneMember* member) {
  const MemberLock lock(member);
  std::vector<Piece> pieces;
  const Lane* const lane = member->lane_.get();
  if (lane == nullptr) return pieces;
  lane->mutex.AssertHeld();
  for (const Piece& part : lane->parts) {
    if (!member->books_.IsMapped(part.address)) continue;
    pieces.push_back({member->base_ + part.address, part.extent});
  }
  return pieces;
}

}  // namespace worker

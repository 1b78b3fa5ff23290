// Lanes: entering and leaving, and blocks that outlive their iteration.
#include <algorithm>
#include <cassert>
#include <utility>

#include "daemon/worker/lane.h"
#include "daemon/worker/lanes.h"
#include "ipc/driver_table.h"

namespace worker {

// The compiler can't know that a member's lane, and so its mutex, stays the same while it is
// locked.
LaneTable::MemberLock::MemberLock(LaneMember* member) NO_THREAD_SAFETY_ANALYSIS
    : mutex_(member->lane_ == nullptr ? nullptr : &member->lane_->mutex) {
  if (mutex_ != nullptr) mutex_->Lock();
}

LaneTable::MemberLock::~MemberLock() NO_THREAD_SAFETY_ANALYSIS {
  if (mutex_ != nullptr) mutex_->Unlock();
}

// --- inside --------------------------------------------------------------------------------------

CUresult LaneTable::Enter(LaneMember* member) {
  assert(member->lane_ != nullptr);
  Lane* const lane = member->lane_.get();
  LaneMember* nobody = nullptr;
  const bool entered = lane->holder.compare_exchange_strong(nobody, member) || nobody == member;
  if (!entered) return CUDA_ERROR_NOT_READY;  // two sessions' live blocks would share memory
  const base::MutexLock lock(&lane->mutex);
  const bool pinned =
      std::any_of(lane->members.begin(), lane->members.end(), [member](const LaneMember* other) {
        other->books_.AssertHeld();
        return other != member && !other->pins_.empty();
      });
  CUresult result = CUDA_ERROR_NOT_READY;
  if (!pinned) {
    do {
      result = Refresh(lane, true);
    } while (!lane->claim->Enter());  // the keeper that was asked is gone
  }
  if (result == CUDA_SUCCESS) result = Fit(lane, member);
  if (result == CUDA_SUCCESS) result = Sync(lane, member);
  if (result != CUDA_SUCCESS) Exit(member);
  return result;
}

void LaneTable::Exit(LaneMember* member) {
  if (!Inside(member)) return;
  member->lane_->claim->Exit();
  LaneMember* expected = member;
  member->lane_->holder.compare_exchange_strong(expected, nullptr);
}

bool LaneTable::Inside(const LaneMember* member) const {
  return member->lane_ != nullptr && member->lane_->holder.load() == member;
}

bool LaneTable::Pinned(LaneMember* member) {
  const MemberLock lock(member);
  return !member->pins_.empty();
}

// --- blocks that outlive their iteration ---------------------------------------------------------

// One new extent for each of the lane's in [offset, end) that the member does not keep yet.
CUresult LaneTable::CreateFresh(Lane* lane, LaneMember* member, uint64_t offset, uint64_t end,
                                std::vector<Piece>* fresh) {
  lane->mutex.AssertHeld();
  member->books_.AssertHeld();
  CUresult result = CUDA_SUCCESS;
  for (const Piece& part : lane->parts) {
    const uint64_t bytes = part.extent.bytes;
    if (part.address >= end || part.address + bytes <= offset ||
        member->Keeps(part.address, bytes)) {
      continue;
    }
    Piece made;
    result = member->job_->Take(lane->device, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) break;
    result = CreatePart(*lane, part.address, bytes, &made);
    if (result != CUDA_SUCCESS) {
      member->job_->Give(lane->device, bytes);
      break;
    }
    fresh->push_back(made);
  }
  if (result == CUDA_SUCCESS) return result;
  for (const Piece& made : *fresh) {
    member->job_->Give(lane->device, made.extent.bytes);
    environment_.extents->Free(made.extent);
  }
  fresh->clear();
  return result;
}

// The old extents stay mapped for the member and go from everyone else's mappings.
void LaneTable::HandOver(Lane* lane, LaneMember* member, const std::vector<Piece>& fresh) {
  lane->mutex.AssertHeld();
  member->books_.AssertHeld();
  for (Piece& part : lane->parts) {
    for (const Piece& made : fresh) {
      if (made.address != part.address) continue;
      member->mapped_.erase(part.address);
      UnmapAll(lane, part);
      const CUdeviceptr at = member->base_ + part.address;
      environment_.extents->ChangeOwner(part.extent, {OwnerKind::kSession, member->session_id_}, at,
                                        at);
      member->kept_[part.address] = {part.extent, {}};
      part = made;
    }
  }
  // What can't be mapped now is tried again by Enter.
  for (LaneMember* const other : lane->members) (void)Sync(lane, other);
  TellChanged(*lane);
}

void LaneTable::NoteBlock(LaneMember* member, const std::pair<const CUdeviceptr, uint64_t>& block) {
  member->books_.AssertHeld();
  const uint64_t offset = block.first - member->base_, end = offset + block.second;
  for (std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
    if (kept.first < end && kept.first + kept.second.extent.bytes > offset)
      kept.second.blocks.insert(block.first);
  }
}

bool LaneTable::InLane(const LaneMember& member, CUdeviceptr address, uint64_t bytes) const {
  const Lane* const lane = member.lane_.get();
  if (bytes == 0 || lane == nullptr) return false;
  lane->mutex.AssertHeld();
  const uint64_t offset = address - member.base_, end = offset + bytes;
  return end >= offset && end <= lane->bytes();
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
    if (touched && !member->Keeps(part.address, part.extent.bytes)) sum += part.extent.bytes;
  }
  return sum;
}

CUresult LaneTable::Keep(LaneMember* member, CUdeviceptr address, uint64_t bytes) {
  const MemberLock lock(member);
  const uint64_t offset = address - member->base_;
  if (bytes != 0 && member->KeptBytes(offset, bytes) == bytes) {  // of the session already
    NoteBlock(member, {address, bytes});
    return CUDA_SUCCESS;
  }
  if (!InLane(*member, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Lane* const lane = member->lane_.get();
  if (!MayKeep(*member)) return CUDA_ERROR_ILLEGAL_STATE;
  if (lane->own()) {  // no other session ever maps it
    member->pins_[address] = bytes;
    return CUDA_SUCCESS;
  }
  std::vector<Piece> fresh;
  const CUresult result = CreateFresh(lane, member, offset, offset + bytes, &fresh);
  if (result == CUDA_SUCCESS) {
    HandOver(lane, member, fresh);
  } else {
    member->pins_[address] = bytes;
  }
  // Pinned or not: an extent that is kept stays as long as any block has a part in it.
  const std::pair<const CUdeviceptr, uint64_t> block(address, bytes);
  NoteBlock(member, block);
  for (const std::pair<const CUdeviceptr, uint64_t>& pinned : member->pins_)
    NoteBlock(member, pinned);
  return result;
}

CUresult LaneTable::Pin(LaneMember* member, CUdeviceptr address, uint64_t bytes) {
  const MemberLock lock(member);
  if (!InLane(*member, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!MayKeep(*member)) return CUDA_ERROR_ILLEGAL_STATE;
  member->pins_[address] = bytes;
  NoteBlock(member, {address, bytes});
  return CUDA_SUCCESS;
}

bool LaneTable::Drop(LaneMember* member, CUdeviceptr address) {
  const MemberLock lock(member);
  bool found = member->pins_.erase(address) != 0;
  for (std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
    if (kept.second.blocks.erase(address) == 0) continue;
    found = true;
    member->has_spare_ = member->has_spare_ || kept.second.blocks.empty();
  }
  return found;
}

// A part of the lane is mapped as a whole: whatever is kept over it has to go with this one.
bool LaneTable::CanGo(const LaneMember& member, uint64_t offset, const std::set<uint64_t>& going) {
  const Lane* const lane = member.lane_.get();
  if (lane == nullptr) return true;
  lane->mutex.AssertHeld();
  member.books_.AssertHeld();
  const uint64_t end = offset + member.kept_.at(offset).extent.bytes;
  for (const Piece& part : lane->parts) {
    const uint64_t part_end = part.address + part.extent.bytes;
    if (part.address >= end || part_end <= offset) continue;
    for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member.kept_) {
      if (kept.first < part_end && kept.first + kept.second.extent.bytes > part.address &&
          going.count(kept.first) == 0) {
        return false;
      }
    }
  }
  return true;
}

uint64_t LaneTable::Reclaim(LaneMember* member) {
  const MemberLock lock(member);
  std::set<uint64_t> going;
  size_t spares = 0, before = 0;
  for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
    if (!kept.second.blocks.empty()) continue;
    ++spares;
    if (kept.second.extent.id != 0) going.insert(kept.first);  // else it is swapped out
  }
  do {
    before = going.size();
    std::erase_if(going, [&](uint64_t offset) { return !CanGo(*member, offset, going); });
  } while (going.size() != before);
  member->has_spare_ = going.size() != spares;
  uint64_t bytes = 0;
  for (const uint64_t offset : going) {
    const Extent extent = member->kept_.at(offset).extent;
    FreePieces(environment_, {{member->base_ + offset, extent}});
    member->job_->Give(member->device_, extent.bytes);
    member->kept_.erase(offset);
    bytes += extent.bytes;
  }
  // When the mapping fails the member leaves the lane, for a block could come to lie in the hole.
  // Enter maps what is missing.
  if (member->lane_ != nullptr && Sync(member->lane_.get(), member) != CUDA_SUCCESS) Exit(member);
  return bytes;
}

std::vector<LaneTable::KeptExtent> LaneTable::Kept(LaneMember* member) {
  const MemberLock lock(member);
  std::vector<KeptExtent> list;
  for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
    list.push_back({{member->base_ + kept.first, kept.second.extent}, kept.second.blocks});
  }
  return list;
}

void LaneTable::SetKept(LaneMember* member, CUdeviceptr address, const Extent& extent) {
  const MemberLock lock(member);
  Extent& kept = member->kept_.at(address - member->base_).extent;
  assert(kept.bytes == extent.bytes);
  kept = extent;
  if (member->lane_ != nullptr) Count(member);
}

void LaneTable::AddKept(LaneMember* member, int device, const Piece& piece) {
  const MemberLock lock(member);
  const uint64_t offset = piece.address - member->base_;
  assert(!member->Keeps(offset, piece.extent.bytes));
  member->job_->Force(device, piece.extent.bytes);
  member->device_ = device;
  member->kept_[offset] = {piece.extent, {}};
  member->has_spare_ = true;  // unless a block is kept in it anew
  Count(member);
}

void LaneTable::ForgetKept(LaneMember* member) {
  const MemberLock lock(member);
  for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
    member->job_->Give(member->device_, kept.second.extent.bytes);
  }
  member->kept_.clear();
  member->pins_.clear();
}

std::vector<Piece> LaneTable::Mapped(LaneMember* member) {
  const MemberLock lock(member);
  std::vector<Piece> pieces;
  const Lane* const lane = member->lane_.get();
  if (lane == nullptr) return pieces;
  lane->mutex.AssertHeld();
  for (const Piece& part : lane->parts) {
    if (member->mapped_.count(part.address) == 0) continue;
    pieces.push_back({member->base_ + part.address, part.extent});
  }
  return pieces;
}

LaneTable::View LaneTable::Look(uint64_t id) {
  View view;
  const std::shared_ptr<Lane> lane = Find(id);
  if (lane == nullptr) return view;
  const base::MutexLock lock(&lane->mutex);
  const LaneMember* const holder = lane->holder.load();
  view.parts = lane->parts;
  view.members = lane->members.size();
  view.holder = holder == nullptr ? 0 : holder->session_id_;
  return view;
}

}  // namespace worker

#include "daemon/worker/lanes.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "daemon/worker/lane.h"
#include "ipc/driver_table.h"

namespace worker {

namespace limits = ipc::limits;

bool LaneMember::Keeps(uint64_t offset, uint64_t bytes) const {
  std::map<uint64_t, Kept>::const_iterator next = kept_.lower_bound(offset + bytes);
  if (next == kept_.begin()) return false;
  --next;
  return next->first + next->second.extent.bytes > offset;
}

uint64_t LaneMember::KeptBytes(uint64_t offset, uint64_t bytes) const {
  uint64_t sum = 0;
  for (const std::pair<const uint64_t, Kept>& kept : kept_) {
    const uint64_t from = std::max(kept.first, offset);
    const uint64_t to = std::min(kept.first + kept.second.extent.bytes, offset + bytes);
    if (from < to) sum += to - from;
  }
  return sum;
}

// --- mappings ------------------------------------------------------------------------------------

void LaneTable::UnmapPart(LaneMember* member, const Piece& part) {
  member->books_.AssertHeld();
  if (member->mapped_.erase(part.address) == 0) return;
  Unmap(environment_, {member->base_ + part.address, part.extent});
}

void LaneTable::UnmapAll(Lane* lane, const Piece& part) {
  lane->mutex.AssertHeld();
  for (LaneMember* const member : lane->members) UnmapPart(member, part);
}

// Maps what the member lacks. The first member that maps another tenant's memory zeroes it.
CUresult LaneTable::Sync(Lane* lane, LaneMember* member) {
  lane->mutex.AssertHeld();
  member->books_.AssertHeld();
  CUresult result = CUDA_SUCCESS;
  for (Piece& part : lane->parts) {
    if (result != CUDA_SUCCESS) break;
    if (member->mapped_.count(part.address) != 0 ||
        member->Keeps(part.address, part.extent.bytes)) {
      continue;
    }
    const Piece here{member->base_ + part.address, part.extent};
    result = MapExtent(environment_, lane->device, here.address, here.extent);
    if (result != CUDA_SUCCESS) break;
    member->mapped_[part.address] = part.extent.bytes;
    result = ClearPieces(environment_, lane->device, {here});
    if (result == CUDA_SUCCESS) part.extent.clear = false;
  }
  Count(member);
  CheckOwners(*lane);
  return result;
}

void LaneTable::Count(LaneMember* member) {
  member->books_.AssertHeld();
  uint64_t bytes = 0;
  for (const std::pair<const uint64_t, uint64_t>& part : member->mapped_) bytes += part.second;
  for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_)
    bytes += kept.second.extent.id != 0 ? kept.second.extent.bytes : 0;
  member->mapped_bytes_.store(bytes, std::memory_order_relaxed);
}

// An extent that one session keeps is in no other session's books.
void LaneTable::CheckOwners(const Lane& lane) const {
  lane.mutex.AssertHeld();
  std::set<uint64_t> ids;
  size_t count = lane.parts.size();
  for (const Piece& part : lane.parts) ids.insert(part.extent.id);
  for (const LaneMember* const member : lane.members) {
    member->books_.AssertHeld();
    count += member->kept_.size();
    for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
      if (kept.second.extent.id == 0) --count;  // swapped out
      if (kept.second.extent.id != 0) ids.insert(kept.second.extent.id);
      assert(member->mapped_.count(kept.first) == 0);
    }
  }
  assert(ids.size() == count);
  static_cast<void>(count);
}

// --- members -------------------------------------------------------------------------------------

std::shared_ptr<LaneMember::Lane> LaneTable::Find(uint64_t lane) {
  const base::MutexLock lock(&mutex_);
  const std::map<uint64_t, std::weak_ptr<Lane>>::iterator found = lanes_.find(lane);
  return found == lanes_.end() ? nullptr : found->second.lock();
}

// Makes the list of extents equal to the keeper's. An extent that a lost worker had only begun to
// add does not fit the sequence: no session uses such an extent, and it goes with the lane.
CUresult LaneTable::Refresh(Lane* lane, bool enters) {
  lane->mutex.AssertHeld();
  if (enters && lane->claim->Take() && !lane->own()) {
    lane->stale = true;
    TellChanged(*lane);  // what the other workers know may be an earlier keeper's
    environment_.extents->Claim(lane->id);
  }
  if (!lane->stale) return CUDA_SUCCESS;
  std::vector<ExtentRecord> records;
  CUresult result = environment_.extents->List(lane->owner(), &records);
  if (result != CUDA_SUCCESS) return result;
  std::map<uint64_t, Piece> before;
  for (const Piece& part : lane->parts) before[part.extent.id] = part;
  lane->parts.clear();
  for (const ExtentRecord& record : records) {
    if (result != CUDA_SUCCESS || record.address != lane->bytes()) continue;
    const std::map<uint64_t, Piece>::const_iterator known = before.find(record.id);
    Piece part{record.address, {}};
    if (known != before.end() && known->second.address == record.address) {
      part = known->second;
      result = environment_.extents->Confirm(part.extent);
      if (result == CUDA_SUCCESS) before.erase(known);
    } else {
      result = environment_.extents->Import(record, &part.extent);
    }
    if (result == CUDA_SUCCESS) lane->parts.push_back(part);
  }
  for (const std::pair<const uint64_t, Piece>& gone : before) {
    UnmapAll(lane, gone.second);
    environment_.extents->Drop(gone.second.extent);
  }
  for (LaneMember* const member : lane->members)
    if (result == CUDA_SUCCESS) result = Sync(lane, member);
  lane->stale = result != CUDA_SUCCESS;
  return result;
}

void LaneTable::OnChanged(uint64_t id) {
  std::vector<std::shared_ptr<Lane>> changed;
  {
    const base::MutexLock lock(&mutex_);
    for (const std::pair<const uint64_t, std::weak_ptr<Lane>>& entry : lanes_) {
      std::shared_ptr<Lane> lane = entry.second.lock();
      if (lane != nullptr && !lane->own() && (id == 0 || id == entry.first))
        changed.push_back(std::move(lane));
    }
  }
  for (const std::shared_ptr<Lane>& lane : changed) {
    const base::MutexLock lock(&lane->mutex);
    lane->stale = true;
    // What fails now is tried again by Enter.
    if (lane->holder.load() == nullptr && !lane->members.empty()) (void)Refresh(lane.get());
  }
}

void LaneTable::TellChanged(const Lane& lane) const {
  if (environment_.daemon == nullptr || lane.own()) return;
  environment_.daemon->Post(ipc::control::LaneChanged{lane.id});
}

CUresult LaneTable::Join(LaneMember* member, uint64_t id, int device) {
  assert(member->lane_ == nullptr && id != 0);
  const std::shared_ptr<LaneClaim> claim = environment_.extents->ClaimOf(id);
  std::shared_ptr<Lane> lane;
  {
    const base::MutexLock lock(&mutex_);
    std::erase_if(lanes_, [](const auto& entry) { return entry.second.expired(); });
    lane = lanes_[id].lock();
    if (lane == nullptr)
      lanes_[id] = lane = std::make_shared<Lane>(id, device, member->uid_, claim);
  }
  const base::MutexLock lock(&lane->mutex);
  CUresult result = lane->holder.load() == nullptr ? Refresh(lane.get()) : CUDA_SUCCESS;
  if (result == CUDA_ERROR_INVALID_VALUE) result = CUDA_SUCCESS;  // changed meanwhile: Enter looks
  if (lane->uid != member->uid_) result = CUDA_ERROR_NOT_PERMITTED;
  if (lane->device != device) result = CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  lane->members.insert(member);
  member->lane_ = lane;
  member->lane_id_ = id;
  member->device_ = device;
  return Sync(lane.get(), member);
}

void LaneTable::Leave(LaneMember* member, bool moves) {
  if (member->lane_ == nullptr) return;
  Exit(member);
  const std::shared_ptr<Lane> lane = std::move(member->lane_);
  const base::MutexLock lock(&lane->mutex);
  for (const Piece& part : lane->parts) UnmapPart(member, part);
  lane->members.erase(member);
  member->lane_id_ = 0;
  member->job_->Give(lane->device, std::exchange(member->reserved_bytes_, 0));
  Count(member);
  if (!lane->members.empty()) return;
  for (const Piece& part : lane->parts) {
    if (lane->own() && !moves) {
      environment_.extents->Free(part.extent);
    } else {
      environment_.extents->Drop(part.extent);
    }
  }
  lane->parts.clear();
  lane->stale = true;
  TellChanged(*lane);  // if the lane had ended before the member came, lanewayd gives it back
}

// --- size ----------------------------------------------------------------------------------------

CUresult LaneTable::CreatePart(const Lane& lane, uint64_t offset, uint64_t bytes, Piece* part) {
  ExtentRecord wanted;
  wanted.owner = lane.owner();
  wanted.bytes = bytes;
  wanted.address = offset;
  wanted.device = static_cast<uint32_t>(lane.device);
  wanted.uid = lane.uid;
  part->address = offset;
  return environment_.extents->Create(wanted, &part->extent);
}

// Parts never reach over the edge of what a member keeps: it could not map them in part.
CUresult LaneTable::GrowLocked(Lane* lane, uint64_t bytes) {
  lane->mutex.AssertHeld();
  const size_t before = lane->parts.size();
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && lane->bytes() < bytes) {
    const uint64_t offset = lane->bytes();
    uint64_t end = bytes;
    for (const LaneMember* const member : lane->members) {
      member->books_.AssertHeld();
      for (const std::pair<const uint64_t, LaneMember::Kept>& kept : member->kept_) {
        for (const uint64_t edge : {kept.first, kept.first + kept.second.extent.bytes}) {
          if (edge > offset) end = std::min(end, edge);
        }
      }
    }
    Piece part;
    result =
        CreatePart(*lane, offset,
                   std::min<uint64_t>(std::bit_floor(end - offset), kLaneExtentBytesMax), &part);
    if (result == CUDA_SUCCESS) lane->parts.push_back(part);
  }
  for (LaneMember* const member : lane->members) {
    if (result == CUDA_SUCCESS) result = Sync(lane, member);
  }
  while (result != CUDA_SUCCESS && lane->parts.size() > before) {
    UnmapAll(lane, lane->parts.back());
    environment_.extents->Free(lane->parts.back().extent);
    lane->parts.pop_back();
  }
  if (lane->parts.size() != before) TellChanged(*lane);
  return result;
}

// An extent that the member keeps from an earlier lane may overlap extents of this lane in part. No
// part of an extent can be mapped, so this lane's extents are made anew, cut at the edges of the
// kept extent. REQUIRES: no session has a live block in the lane.
CUresult LaneTable::Fit(Lane* lane, LaneMember* member) {
  lane->mutex.AssertHeld();
  const uint64_t wanted = std::max(lane->bytes(), member->reserved_bytes_);
  const std::vector<Piece>::iterator first =
      std::find_if(lane->parts.begin(), lane->parts.end(), [&](const Piece& part) {
        member->books_.AssertHeld();
        const uint64_t kept = member->KeptBytes(part.address, part.extent.bytes);
        return kept != 0 && kept != part.extent.bytes;
      });
  if (first != lane->parts.end()) TellChanged(*lane);
  for (std::vector<Piece>::iterator part = first; part != lane->parts.end(); ++part) {
    UnmapAll(lane, *part);
    environment_.extents->Free(part->extent);
  }
  lane->parts.erase(first, lane->parts.end());
  return lane->bytes() < wanted ? GrowLocked(lane, wanted) : CUDA_SUCCESS;
}

CUresult LaneTable::Reserve(LaneMember* member, uint64_t bytes) {
  assert(member->lane_ != nullptr);
  if (bytes > limits::kEphemeralBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t want = RoundUpToExtent(bytes), have = member->reserved_bytes_;
  if (want <= have) return CUDA_SUCCESS;
  Lane* const lane = member->lane_.get();
  if (!member->job_->Take(lane->device, want - have)) return CUDA_ERROR_OUT_OF_MEMORY;
  const base::MutexLock lock(&lane->mutex);
  // A member outside lets the lane grow when it enters.
  const bool inside = lane->own() || lane->holder.load() == member;
  const CUresult result = inside ? GrowLocked(lane, want) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    member->reserved_bytes_ = want;
  } else {
    member->job_->Give(lane->device, want - have);
  }
  return result;
}

CUresult LaneTable::ReserveAgain(LaneMember* member, uint64_t bytes) {
  assert(member->lane_ != nullptr);
  if (bytes > limits::kEphemeralBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t want = RoundUpToExtent(bytes), have = member->reserved_bytes_;
  if (want <= have) return CUDA_SUCCESS;
  member->job_->Force(member->lane_->device, want - have);
  member->reserved_bytes_ = want;
  return CUDA_SUCCESS;
}

// No more than `bytes` may stay, for no more are counted. An extent that reaches beyond goes as a
// whole, and the next session that enters makes up for the difference. No session is inside, so no
// block is alive.
bool LaneTable::Shrink(uint64_t id, uint64_t bytes) {
  const std::shared_ptr<Lane> lane = Find(id);
  if (lane == nullptr) {
    ShrinkUnused(id, bytes);
    return true;
  }
  const base::MutexLock lock(&lane->mutex);
  // A session that enters from now on learns the lane's size under the lock.
  if (lane->holder.load() != nullptr) return false;
  if (lane->members.empty()) {
    ShrinkUnused(id, bytes);
    return true;
  }
  while (lane->bytes() > RoundUpToExtent(bytes)) {
    UnmapAll(lane.get(), lane->parts.back());
    environment_.extents->Free(lane->parts.back().extent);
    lane->parts.pop_back();
  }
  for (LaneMember* const member : lane->members) Count(member);
  TellChanged(*lane);
  return true;
}

// lanewayd's members of a lane are not in it before they reserve some of it: what earlier ones left
// is the keeper's alone then.
void LaneTable::ShrinkUnused(uint64_t id, uint64_t bytes) {
  std::vector<ExtentRecord> records;
  if (environment_.extents->List({OwnerKind::kLane, id}, &records) != CUDA_SUCCESS) return;
  for (const ExtentRecord& record : records) {
    Extent extent;
    const bool stays = record.address + record.bytes <= RoundUpToExtent(bytes);
    if (stays || environment_.extents->Import(record, &extent) != CUDA_SUCCESS) continue;
    environment_.extents->Free(extent);
  }
}

// --- larger extents ------------------------------------------------------------------------------

// Replaces parts from `first` on by one, if together they are as large as an extent may be and no
// member keeps an extent there.
bool LaneTable::MergeRun(Lane* lane, size_t first, uint64_t* bytes) {
  lane->mutex.AssertHeld();
  const uint64_t offset = lane->parts[first].address;
  uint64_t sum = 0, merged = 0;
  size_t last = 0;
  for (size_t i = first; i < lane->parts.size() && sum < kLaneExtentBytesMax; ++i) {
    sum += lane->parts[i].extent.bytes;
    if (i == first || !std::has_single_bit(sum) || sum > std::min(*bytes, kLaneExtentBytesMax)) {
      continue;
    }
    merged = sum;
    last = i;
  }
  if (merged == 0) return false;
  for (const LaneMember* const member : lane->members) {
    member->books_.AssertHeld();
    if (member->Keeps(offset, merged)) return false;
  }
  Piece large;
  if (CreatePart(*lane, offset, merged, &large) != CUDA_SUCCESS) return false;
  for (size_t i = first; i <= last; ++i) {
    UnmapAll(lane, lane->parts[i]);
    environment_.extents->Free(lane->parts[i].extent);
  }
  lane->parts[first] = large;
  lane->parts.erase(lane->parts.begin() + static_cast<ptrdiff_t>(first) + 1,
                    lane->parts.begin() + static_cast<ptrdiff_t>(last) + 1);
  *bytes = merged;
  return true;
}

uint64_t LaneTable::Coalesce(uint64_t id, uint64_t budget_bytes) {
  const std::shared_ptr<Lane> lane = Find(id);
  if (lane == nullptr) return 0;
  assert(lane->holder.load() == nullptr);
  const base::MutexLock lock(&lane->mutex);
  uint64_t done = 0;
  for (size_t first = 0; first < lane->parts.size(); ++first) {
    uint64_t bytes = budget_bytes - done;
    if (MergeRun(lane.get(), first, &bytes)) done += bytes;
  }
  // What can't be mapped now is tried again by Enter.
  for (LaneMember* const member : lane->members) (void)Sync(lane.get(), member);
  if (done != 0) TellChanged(*lane);
  return done;
}

}  // namespace worker

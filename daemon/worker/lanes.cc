#include "daemon/worker/lanes.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "daemon/worker/lane.h"

namespace worker {

namespace limits = ipc::limits;

// The compiler can't know that a member's lane, and so its mutex, stays the same while it is
// locked.
LaneTable::MemberLock::MemberLock(LaneMember* member) NO_THREAD_SAFETY_ANALYSIS
    : mutex_(member->lane_ == nullptr ? nullptr : &member->lane_->mutex) {
  if (mutex_ != nullptr) mutex_->Lock();
}

LaneTable::MemberLock::~MemberLock() NO_THREAD_SAFETY_ANALYSIS {
  if (mutex_ != nullptr) mutex_->Unlock();
}

// --- members -------------------------------------------------------------------------------------

std::shared_ptr<LaneMember::Lane> LaneTable::Find(uint64_t lane) {
  const base::MutexLock lock(&mutex_);
  const std::map<uint64_t, std::weak_ptr<Lane>>::iterator found = lanes_.find(lane);
  return found == lanes_.end() ? nullptr : found->second.lock();
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
      lanes_[id] = lane = std::make_shared<Lane>(environment_, id, device, member->uid_, claim);
  }
  const base::MutexLock lock(&lane->mutex);
  CUresult result = lane->holder.load() == nullptr ? lane->Refresh() : CUDA_SUCCESS;
  if (result == CUDA_ERROR_INVALID_VALUE) result = CUDA_SUCCESS;  // changed meanwhile: Enter looks
  if (lane->uid != member->uid_) result = CUDA_ERROR_NOT_PERMITTED;
  if (lane->device != device) result = CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  lane->members.insert(member);
  member->lane_ = lane;
  member->lane_id_ = id;
  member->device_ = device;
  return lane->Map(member);
}

void LaneTable::Leave(LaneMember* member, bool moves) {
  if (member->lane_ == nullptr) return;
  Exit(member);
  const std::shared_ptr<Lane> lane = std::move(member->lane_);
  const base::MutexLock lock(&lane->mutex);
  for (const Piece& part : lane->parts) lane->Unmap(member, part);
  lane->members.erase(member);
  member->lane_id_ = 0;
  member->job_->Give(lane->device, std::exchange(member->reserved_bytes_, 0));
  member->guard_.AssertHeld();
  member->CountMapped();
  if (!lane->members.empty()) return;
  lane->LetGo(lane->own() && !moves);
  lane->TellChanged();  // if the lane had ended before the member came, lanewayd gives it back
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
    // A lane that cannot be refreshed now is refreshed by Enter().
    if (lane->holder.load() == nullptr && !lane->members.empty()) (void)lane->Refresh();
  }
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
        other->guard_.AssertHeld();
        return other != member && other->books_.is_pinned();
      });
  CUresult result = CUDA_ERROR_NOT_READY;
  if (!pinned) {
    do {
      result = lane->Refresh(true);
    } while (!lane->claim->Enter());  // the keeper that was asked is gone
  }
  if (result == CUDA_SUCCESS) result = lane->Fit(member);
  if (result == CUDA_SUCCESS) result = lane->Map(member);
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

// --- size ----------------------------------------------------------------------------------------

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
  const CUresult result = inside ? lane->Grow(want) : CUDA_SUCCESS;
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
    lane->RemoveLast();
  }
  for (LaneMember* const member : lane->members) {
    member->guard_.AssertHeld();
    member->CountMapped();
  }
  lane->TellChanged();
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

uint64_t LaneTable::Coalesce(uint64_t id, uint64_t budget_bytes) {
  const std::shared_ptr<Lane> lane = Find(id);
  if (lane == nullptr) return 0;
  assert(lane->holder.load() == nullptr);
  const base::MutexLock lock(&lane->mutex);
  uint64_t done = 0;
  for (size_t first = 0; first < lane->parts.size(); ++first) {
    uint64_t bytes = budget_bytes - done;
    if (lane->Merge(first, &bytes)) done += bytes;
  }
  lane->MapForAll();
  if (done != 0) lane->TellChanged();
  return done;
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

#include "daemon/worker/lane_claims.h"

namespace worker {

bool LaneClaim::Take() {
  Standing none = Standing::kNone;
  return standing_.compare_exchange_strong(none, Standing::kTaken);
}

bool LaneClaim::Enter() {
  Standing before = Standing::kTaken;
  return standing_.compare_exchange_strong(before, Standing::kInside) ||
         before == Standing::kInside;
}

void LaneClaim::Exit() {
  Standing inside = Standing::kInside;
  standing_.compare_exchange_strong(inside, Standing::kTaken);
}

bool LaneClaim::OnNewKeeper() {
  Standing before = Standing::kTaken;
  standing_.compare_exchange_strong(before, Standing::kNone);
  return before == Standing::kInside;
}

std::shared_ptr<LaneClaim> LaneClaims::Of(uint64_t lane) {
  const base::MutexLock lock(&mutex_);
  std::weak_ptr<LaneClaim>& known = claims_[lane];
  std::shared_ptr<LaneClaim> claim = known.lock();
  if (claim == nullptr) known = claim = std::make_shared<LaneClaim>();
  return claim;
}

std::set<uint64_t> LaneClaims::OnNewKeeper() {
  const base::MutexLock lock(&mutex_);
  std::set<uint64_t> inside;
  for (auto it = claims_.begin(); it != claims_.end();) {
    const std::shared_ptr<LaneClaim> claim = it->second.lock();
    if (claim != nullptr && claim->OnNewKeeper()) inside.insert(it->first);
    it = claim == nullptr ? claims_.erase(it) : std::next(it);
  }
  return inside;
}

bool SpeaksFor(const ipc::control::Owner& owner, const std::set<uint64_t>& lanes) {
  if (owner.kind == ipc::control::OwnerKind::kSession) return true;
  return ipc::control::IsOwnLane(owner.id) || lanes.count(owner.id) != 0;
}

}  // namespace worker

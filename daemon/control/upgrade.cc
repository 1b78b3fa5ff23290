#include "daemon/control/upgrade.h"

#include <cassert>
#include <utility>

namespace control {

void Upgrade::Begin(const std::string& peer, const std::map<uint32_t, Worker>& workers) {
  assert(!running());
  *this = {};
  for (const std::pair<const uint32_t, Worker>& entry : workers) {
    if (entry.second.own) continue;
    from_.insert(entry.first);
    if (entry.second.TakesSessions()) stays_.insert(entry.first);
  }
  peers_.push_back(peer);
}

const std::set<uint32_t>& Upgrade::held() const {
  static const std::set<uint32_t>* const kNone = new std::set<uint32_t>;
  return waits_for_worker() ? stays_ : *kNone;
}

std::vector<uint64_t> Upgrade::Release(const SessionTable& sessions) {
  assert(waits_for_worker());
  released_ = true;
  for (const std::pair<const uint64_t, Session>& entry : sessions.all()) {
    const Session& session = entry.second;
    if (session.phase != Phase::kRunning || from_.count(session.worker) == 0) continue;
    if (ObstacleOf(session).empty()) {
      moving_.insert(entry.first);
    } else {
      ++kept_;
    }
  }
  moved_ = moving_.size();
  return {moving_.begin(), moving_.end()};
}

void Upgrade::Except(uint64_t session) { moved_ -= moving_.erase(session); }

std::optional<Upgrade::Answer> Upgrade::Finish(const SessionTable& sessions) {
  if (!running() || !released_) return std::nullopt;
  std::erase_if(moving_, [&](uint64_t id) {
    const Session* const session = sessions.Find(id);
    if (session == nullptr || session->phase == Phase::kLost) return true;
    return session->phase == Phase::kRunning && from_.count(session->worker) == 0;
  });
  if (!moving_.empty()) return std::nullopt;
  Answer answer{std::move(peers_), moved_, kept_};
  *this = {};
  return answer;
}

Upgrade::Answer Upgrade::Fail() {
  Answer answer{std::move(peers_), 0, 0};
  *this = {};
  return answer;
}

}  // namespace control

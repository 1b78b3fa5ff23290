// One run of `laneway upgrade-worker`: replaces the shared workers by a new one.
//
// Its steps: the workers take no more sessions; once a new worker is ready, their sessions are
// asked to leave; when each of these runs elsewhere or is out, the command is answered. When the
// new worker does not come, the old ones stay. Pure: lanewayd reports events and performs the
// answers. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/control/children.h"
#include "daemon/control/session_table.h"

namespace control {

class Upgrade {
 public:
  struct Answer {
    std::vector<std::string> peers;  // of the control plane
    size_t moved = 0;                // sessions that were asked to leave
    size_t kept = 0;                 // sessions that could not move
  };

  bool running() const { return !peers_.empty(); }
  // A new worker is waited for.
  bool waits_for_worker() const { return running() && !released_; }

  // REQUIRES: !running().
  void Begin(const std::string& peer, const std::map<uint32_t, Worker>& workers);
  // One more peer waits for the answer. REQUIRES: running().
  void Join(const std::string& peer) { peers_.push_back(peer); }
  const std::set<uint32_t>& from() const { return from_; }  // workers to replace
  // Workers that end only when the new one is there: nothing else made them leave.
  const std::set<uint32_t>& held() const;

  // The new worker is ready. Returns the sessions to ask to leave. REQUIRES: waits_for_worker().
  std::vector<uint64_t> Release(const SessionTable& sessions);
  // The session could not be asked.
  void Except(uint64_t session);
  // The answer, once each session that was asked runs in another worker or is out.
  std::optional<Answer> Finish(const SessionTable& sessions);
  // The new worker does not come: the answer's peers are told. Then held() workers stay.
  Answer Fail();

 private:
  std::vector<std::string> peers_;  // that wait for the answer; none: no upgrade runs
  std::set<uint32_t> from_;
  std::set<uint32_t> stays_;   // of these, when the upgrade fails
  std::set<uint64_t> moving_;  // sessions that were asked to leave, and do not run elsewhere yet
  bool released_ = false;
  size_t moved_ = 0;
  size_t kept_ = 0;
};

}  // namespace control

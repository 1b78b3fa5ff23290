// Which session of each lane has its turn, and which one follows: the decisions, without their
// effects.
//
// At most one session holds a lane. lanewayd decides which, and publishes which sessions may
// follow: a session that leaves passes its lane to the first published successor that has work, and
// lanewayd is told afterwards. Without a daemon the sessions of a lane take turns by themselves, in
// the order in which they came to wait. (Salus 2.4: a job switches where its ephemeral memory is
// gone, between two iterations.)
//
// Each event returns what is to be done, in order. The turns themselves are ipc/turn.h's machine.
// Thread safety: none; the caller has a lock. No clock and no thread is known here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "ipc/control.h"
#include "ipc/turn.h"

namespace worker {

// What a session's own thread has to know of its turn.
enum class GateState : uint32_t {
  kOpen = 0,
  kRevoked = 1,  // open until its next boundary
  kClosed = 2,
};
constexpr GateState GateStateOf(ipc::Turn turn) {
  if (turn == ipc::Turn::kHolding) return GateState::kOpen;
  return turn == ipc::Turn::kRevoked ? GateState::kRevoked : GateState::kClosed;
}

// --- what is to be done
// The gate of the session has this state, and its thread need not hurry to see it.
struct ShowGate {
  uint64_t session = 0;
  GateState state = GateState::kClosed;
};
// The gate opens. `switched` is reported, too; see Board::Perform() for when.
struct OpenGate {
  uint64_t session = 0;
  std::optional<ipc::control::Switched> switched;
};
// The session is about to get its lane: its thread is woken now, to be awake by then.
struct PrepareSession {
  uint64_t session = 0;
};
// The session's thread looks at its gate.
struct WakeSession {
  uint64_t session = 0;
};
// Told to lanewayd. `at_us` of a Switched is filled in when it is told.
using TurnReport = std::variant<ipc::control::Switched, ipc::control::GateReport>;
using TurnAction = std::variant<ShowGate, OpenGate, PrepareSession, WakeSession, TurnReport>;
using TurnActions = std::vector<TurnAction>;

struct GateView {
  uint64_t lane = 0;
  ipc::Turn turn = ipc::Turn::kOutside;
  bool granted = false;      // it holds the lane
  bool wants = false;        // it has work
  bool open = false;         // its work may pass
  bool idle_untold = false;  // lanewayd believes that it has work
  bool uncontended = false;  // it holds its lane, and lanewayd knows of no other session
};

class TurnTable {
 public:
  // --- a session of this worker; every function below ignores sessions that are not added
  void Add(uint64_t session) { sessions_[session]; }
  // Its lane goes to the next session.
  TurnActions Remove(uint64_t session);
  // It has work. Reported once, until it is reported idle.
  TurnActions ReportRunnable(uint64_t session);
  // It has none: kIdle or kStalled. The report of an uncontended session waits for
  // FlushIdleReport() or for the next decision about the session: a program that computes for a
  // moment in each iteration would otherwise send two reports in each.
  TurnActions ReportIdle(uint64_t session, ipc::control::GateEvent idle);
  TurnActions FlushIdleReport(uint64_t session);
  // kClose, kDeviceDone, kSwappedOut, kTakeLane and kSwappedIn. kTakeLane does nothing while
  // another session holds the lane.
  TurnActions Apply(uint64_t session, ipc::TurnEvent event);

  // --- orders of lanewayd
  // Refused when another session holds the lane; the report names the holder. A lane is never
  // opened over its holder.
  TurnActions Grant(uint64_t session, uint64_t lane);
  TurnActions Revoke(uint64_t session);
  // The session holds its lane no more when this is another; the new one is granted anew.
  TurnActions SetLane(uint64_t session, uint64_t lane);
  // Also of a session that is yet to be added. Only lanewayd lets a paused session in.
  TurnActions SetPaused(uint64_t session, bool paused);
  // In this order, whichever of them has work. A list may be older than SetLane().
  void SetSuccessors(uint64_t lane, std::vector<uint64_t> sessions);
  // Counts also for sessions that enter the lane later: lanewayd says only once that several
  // workers share a lane, perhaps before it sends the first session there.
  TurnActions SetPolicy(const ipc::control::LanePolicy& policy);
  // The lane has ended. Its policy goes, too.
  void ForgetLane(uint64_t lane);
  // Notes that a daemon is there, or none. Without one, lanes are used in turns.
  TurnActions SetDaemon(bool present);

  GateView View(uint64_t session) const;
  // Another session of its lane would follow if this one left.
  bool HasCompetitor(uint64_t session) const;

 private:
  struct Session {
    uint64_t lane = 0;
    ipc::Turn turn = ipc::Turn::kOutside;
    ipc::control::GateEvent demand = ipc::control::GateEvent::kIdle;
    ipc::control::GateEvent told = ipc::control::GateEvent::kIdle;  // what lanewayd believes
    uint64_t ticket = 0;  // its place among the sessions that wait
  };
  struct Lane {
    uint64_t holder = 0;    // 0: none
    bool contended = true;  // see ipc::control::LanePolicy
    bool self_service = true;
    std::vector<uint64_t> successors;
  };
  using Entry = std::pair<const uint64_t, Session>;

  Entry* Find(uint64_t session);
  const Entry* Find(uint64_t session) const;
  bool CanFollow(const Entry& entry) const;
  bool HasSessions(uint64_t lane) const;
  bool IsUncontended(const Entry& entry) const;
  Entry* Next(uint64_t lane_id);
  void Move(Entry* entry, ipc::TurnEvent event,
            std::optional<ipc::control::Switched> switched = std::nullopt);
  void PassOn(const Entry& from);
  void OpenIfFree(uint64_t lane);
  void ReportIfUntold(Entry* entry);
  void Do(TurnAction action) { actions_.push_back(std::move(action)); }
  TurnActions Done() { return std::exchange(actions_, {}); }

  std::map<uint64_t, Session> sessions_;
  std::map<uint64_t, Lane> lanes_;
  std::set<uint64_t> paused_;
  uint64_t tickets_ = 0;
  bool daemon_ = true;
  TurnActions actions_;  // of the event that is handled now
};

}  // namespace worker

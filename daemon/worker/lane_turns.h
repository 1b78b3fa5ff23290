// Decides when a session leaves its lane and when it may go to the host: a pure machine over
//
//     {at a boundary, inside an iteration}
//
// and facts that other parts keep: the state of the gate, whether the session is inside the lane,
// and where the session's memory is. Step() takes a state and an event and says what is to be done;
// LaneExecutor does it. Thread safety: a state is one thread's, see HandOver for the one exception.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "daemon/worker/gate.h"

namespace worker {

struct LaneState {
  bool at_boundary = true;  // nothing of an iteration lies in the lane
};

// What else matters at the moment of an event.
struct LaneFacts {
  GateState gate = GateState::kOpen;
  bool uses_lane = false;         // the session has reserved a part of a lane
  bool inside = false;            // it has entered that lane, and not left it since
  bool turn_is_over = false;      // without a daemon: another session of the lane waits
  bool pinned = false;            // blocks that outlive their iteration keep the lane
  bool client_is_done = false;    // all that it sent was taken, and none of its blocks lives
  bool waits_at_the_end = false;  // the client sleeps after as much work as an iteration has
  bool iterates = false;          // a boundary is to be expected
  bool device_is_done = false;
  // of an order to go to the host
  bool on_host = false;       // the memory is there already
  bool with_lane = false;     // what lies in the lane goes along
  bool takes_memory = false;  // the session was granted memory that it has not taken yet
};

enum class LaneEvent {
  kWork,        // a call that touches memory is about to be served
  kBoundary,    // the program has passed one
  kLook,        // the thread looks at its gate between two messages
  kWait,        // the thread waits for lanewayd inside a call
  kSilence,     // no message came for a while
  kRest,        // the device is done, too: may others have the lane?
  kOrderedOut,  // to the host
};

enum class LaneAction {
  kNone,
  kLeave,  // closes its gate, and hands the lane over when the device is done
  kMayGo,  // others may have the lane; kOrderedOut: the memory goes to the host
  kRefuseAlreadyOut,
  kRefuseInIteration,
  kRefuseTakesMemory,
};

// Nothing that the session still needs lies in its lane.
bool LaneIsEmpty(const LaneState& state, const LaneFacts& facts);

// Changes `state` and says what follows.
LaneAction Step(LaneState* state, LaneEvent event, const LaneFacts& facts);

// The way out of a lane: it is the next session's when this one's streams are done. The streams'
// callbacks run on the driver's threads. Whichever part is done last hands the lane over, and until
// Finish() the session's thread leaves the lane alone.
class HandOver {
 public:
  // Streams that are busy, at the moment when the gate is closed. Part() follows for each, and once
  // more for the caller.
  void Begin(size_t busy) { parts_.store(static_cast<uint32_t>(kWayOut + 1 + busy)); }
  // True for the last part: then the lane is left, Finish() called, and the next session let in.
  [[nodiscard]] bool Part() { return parts_.fetch_sub(1) == kWayOut + 1; }
  void Finish() { parts_.store(0); }
  bool under_way() const { return parts_.load() != 0; }

 private:
  static constexpr uint32_t kWayOut = 1;  // counted until Finish()
  std::atomic<uint32_t> parts_{0};
};

}  // namespace worker

// The next message of a session, taken in the session's turn: where the session's thread waits for
// messages, and for its gate and its lane.
//
// The gate is asked before a message is taken, so untaken messages stay in the ring. A session that
// waits here with nothing on the device can be moved to another worker, and the messages move
// along. While no message comes the thread does what can be done only between two: commands, quiet
// points, leaving the lane. Thread safety: one session's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "ipc/channel.h"

namespace worker {

class TurnWait {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    Holdings* held;
    SessionLife* life;
    Parking* parking;
    SessionHandover* handover;
    Iterations* iterations;
    LaneMembership* lane;
    LaneExecutor* turn;
  };
  explicit TurnWait(const Surroundings& around) : around_(around) {}
  TurnWait(const TurnWait&) = delete;

  // The receiver's next message, once it may be taken. Empty after a bounded wait: none came, it is
  // not the session's turn, or the receiver is broken.
  std::span<const std::byte> NextUntrusted(ipc::Receiver* receiver);
  // The message that was taken is about to be served. `is_work`: it touches memory.
  void OnTaken(bool is_work);
  // The message was served.
  void OnServed();

 private:
  // True when the next message may be taken; waits at the gate when it may not.
  bool Pass(ipc::Receiver* receiver);
  // True when the message is to be taken in the session's turn alone.
  bool AwaitsTurn(std::span<const std::byte> message) const;
  bool TryEnterLane();
  // Waits at the closed gate.
  void AwaitGate();
  // The wait for a message ended without one.
  void OnSilence();
  // How long to look out for a message before sleeping.
  int64_t SpinUs() const;
  // How long to wait for something: not long while a quiet point is due.
  int64_t Patience(int64_t patience_us) const;

  static constexpr int64_t kPatienceUs = 5'000;  // silent for so long: idle
  static constexpr int64_t kUnquietUs = 1'000;   // no event tells when a stream is done

  const Surroundings around_;
  bool busy_ = false;                  // the program sends work, and does not only ask
  int64_t patience_us_ = kPatienceUs;  // how long to wait for a message before looking around
  int64_t unquiet_us_ = kUnquietUs;    // the same while the device is busy
  int64_t idle_since_us_ = 0;          // since when the session has had no work
};

}  // namespace worker

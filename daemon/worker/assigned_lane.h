// Which lane lanewayd has told a session to be in, and how many bytes of a lane the session has
// reserved. Decisions alone: LaneMembership does what follows, where nothing of the session is on
// the device.
//
// A session follows an assignment later than it hears of it, when it is quiet. A newer assignment
// may have come by then, and only the last one counts: the lane of an older one may have ended. A
// session on the host is in no lane, so an assignment that comes meanwhile counts on the way back.
// A session that took a lane of its own while no lanewayd was there may be inside an iteration when
// the next lanewayd assigns a lane: the session follows at its boundary.
// Thread safety: Told(), told(), bytes(), TellBytes() from any thread; the rest on the session's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace worker {

class AssignedLane {
 public:
  // --- lanewayd's assignments
  void Told(uint64_t lane) { told_.store(lane); }
  uint64_t told() const { return told_.load(); }
  // An earlier assignment is to be followed now: the lane to change to, or 0 for none. `away`: the
  // session's memory is on the host. `occupied`: an iteration's memory lies in the present lane.
  uint64_t Follow(uint64_t lane, bool away, bool occupied = false) {
    if (away) {
      when_back_ = lane;
      return 0;
    }
    if (bytes_.load() == 0 || lane != told_.load()) return 0;
    follows_late_ = occupied;
    return occupied ? 0 : lane;
  }
  // An assignment waits for the end of the iteration.
  bool follows_late() const { return follows_late_; }
  // The iteration has ended: the lane to change to, or 0 for none.
  uint64_t FollowLate() { return std::exchange(follows_late_, false) && uses() ? told() : 0; }

  // --- the session's part of the lane. While the part has 0 bytes, nothing of the session lies in
  // a lane.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int device() const { return device_; }
  bool uses() const { return bytes_.load() != 0; }
  // True when the session must ask lanewayd for a part of `wanted` bytes. The session asks when its
  // part is smaller. It also asks when it is no member of its lane. The first request decides on
  // which device the lane is.
  bool MustAsk(uint64_t wanted, int device, bool is_member) {
    if (!uses()) device_ = device;
    return wanted > bytes_.load() || !is_member;
  }
  // lanewayd has granted so much in all, and the session has yet to reserve it. 0: it does not.
  void Granted(uint64_t bytes) { granted_.store(bytes); }
  void Grown(uint64_t bytes) {
    bytes_.store(bytes);
    granted_.store(0);
  }
  // The bytes of the lane that the next lanewayd has to count for the session. Without the granted
  // part it would shrink the lane under the session, or give the memory to another session.
  uint64_t TellBytes() const { return std::max(granted_.load(), bytes_.load()); }
  void GivenBack() { bytes_.store(0); }
  // Back from the host, a session may get its turn before lanewayd has told it of a lane.
  bool Lacks(bool is_member) const { return uses() && !is_member; }

  // --- the way to the host and back
  // Also of a session that comes from another worker while its memory is there.
  void Gone() {
    when_back_ = 0;
    follows_late_ = false;
  }
  // The lane to change to on the way back; 0: lanewayd has told of none.
  uint64_t ForReturn() const { return uses() ? when_back_ : 0; }

 private:
  std::atomic<uint64_t> told_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> granted_{0};  // 0: no more than bytes_
  uint64_t when_back_ = 0;
  bool follows_late_ = false;
  int device_ = 0;
};

}  // namespace worker

// Where a session's memory is, and what people have ordered for the session: the two facts that
// lanewayd, the worker and the scheduler all keep, in one spelling. Also in control messages, so
// both are plain 32-bit words, and a decoder checks them with Valid().
#pragma once

#include <cstdint>

namespace scheduler {

enum class Residence : uint32_t {
  kDevice = 0,
  kGoingOut = 1,  // to the host: ordered or under way
  kHost = 2,
  kComingIn = 3,  // back to the device: ordered or under way
};

struct Place {
  Residence residence = Residence::kDevice;
  // 1: the live memory of its lane is, or goes, with it: the session is inside an iteration.
  uint32_t lane_saved = 0;

  bool operator==(const Place&) const = default;
};

// On the device a lane's memory is in its lane.
constexpr bool Valid(Place place) {
  return place.residence <= Residence::kComingIn && place.lane_saved <= 1 &&
         (place.residence != Residence::kDevice || place.lane_saved == 0);
}

// A swap ends at the other side or, when it fails, where it began. Between the two the lane is
// saved or not as it was at the start.
constexpr bool Legal(Place from, Place to) {
  if (!Valid(from) || !Valid(to)) return false;
  const bool same_lane = from.lane_saved == to.lane_saved;
  switch (from.residence) {
    case Residence::kDevice:
      return to.residence == Residence::kGoingOut;
    case Residence::kGoingOut:
      return to.residence == Residence::kDevice || (to.residence == Residence::kHost && same_lane);
    case Residence::kHost:
      return to.residence == Residence::kComingIn && same_lane;
    case Residence::kComingIn:
      return to.residence == Residence::kDevice || (to.residence == Residence::kHost && same_lane);
  }
  return false;
}

// What people have ordered for a session. It outlives the daemon that was told.
enum class Pause : uint32_t {
  kNone = 0,
  kPaused = 1,   // stops at its next boundary and is granted nothing
  kEvicted = 2,  // and leaves its memory
  // Evicted until its memory has left. It may have more work then; no order outlives the way, so
  // only the scheduler knows of it.
  kDismissed = 3,
};

}  // namespace scheduler

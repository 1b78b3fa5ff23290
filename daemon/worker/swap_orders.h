// lanewayd's orders to move a session's memory to the host and back: carries each out where nothing
// of the session is on the device, and answers it.
//
// Thread safety: OnOrder(), Look() and on_host() from any thread; the rest on the session's.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/memory_place.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/parking.h"
#include "ipc/control.h"

namespace worker {

class SwapOrders {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session_id;
    Holdings* held;
    LaneMembership* lane;
    LaneExecutor* turn;
    const MemoryRequests* requests;
    Parking* parking;
  };
  explicit SwapOrders(const Surroundings& around) : around_(around) {}
  SwapOrders(const SwapOrders&) = delete;

  void OnOrder(const ipc::control::Swap& swap);
  // The session comes from another worker, which had swapped it out.
  void InheritSwapped();

  scheduler::Place Look() const { return place_.Look(); }
  bool on_host() const { return place_.on_host(); }

 private:
  void Execute(bool out, bool with_lane);
  absl::Status Out(bool with_lane);
  CUresult In(bool with_lane);

  const Surroundings around_;
  MemoryPlace place_;
};

}  // namespace worker

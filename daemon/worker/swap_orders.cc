#include "daemon/worker/swap_orders.h"

#include <string>

namespace worker {

namespace wire = ipc::control;

void SwapOrders::OnOrder(const wire::Swap& swap) {
  place_.Ordered(swap.out != 0);
  around_.parking->Post([this, swap] { Execute(swap.out != 0, swap.with_lane != 0); });
}

void SwapOrders::InheritSwapped() {
  place_.Moved(true, false);
  around_.lane->OnHost();
}

absl::Status SwapOrders::Out(bool with_lane) {
  LaneFacts order;
  order.on_host = around_.held->arena.swapped();
  order.with_lane = with_lane;
  order.takes_memory = around_.requests->TakesMemory();
  switch (around_.turn->OnOrderedOut(order)) {
    case LaneAction::kMayGo:
      break;
    case LaneAction::kRefuseAlreadyOut:
      return absl::FailedPreconditionError("it is there already");
    case LaneAction::kRefuseInIteration:
      return absl::FailedPreconditionError("it has begun an iteration");
    default:
      return absl::FailedPreconditionError("it is about to take what it was granted");
  }
  if (around_.held->arrays.bytes() != 0)
    return absl::FailedPreconditionError("it has arrays, which stay on the device");
  if (around_.held->arena.shares())
    return absl::FailedPreconditionError("it shares memory with other sessions");
  if (const absl::Status saved = around_.held->arena.SwapOut(with_lane); !saved.ok()) return saved;
  around_.lane->Leave();
  around_.turn->gate()->OnSwappedOut();
  around_.lane->OnHost();
  return absl::OkStatus();
}

// A session that is not back is in no lane, as lanewayd counts.
CUresult SwapOrders::In(bool with_lane) {
  Gate* const gate = around_.turn->gate();
  around_.lane->JoinForReturn();
  CUresult result = CUDA_SUCCESS;
  if (with_lane) result = gate->TakeLane() ? around_.lane->Enter() : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) result = around_.held->arena.SwapIn();
  if (result == CUDA_SUCCESS) {
    gate->OnSwappedIn();
  } else {
    around_.lane->Leave();
    gate->OnSwappedOut();
  }
  return result;
}

// The place changes before the answer: a daemon that is told of this session meanwhile hears of one
// place.
void SwapOrders::Execute(bool out, bool with_lane) {
  wire::Swapped swapped;
  swapped.session_id = around_.session_id;
  swapped.out = out;
  if (out) {
    const absl::Status status = Out(with_lane);
    if (!status.ok()) {
      swapped.result = CUDA_ERROR_OUT_OF_MEMORY;
      wire::SetText(swapped.sentence, std::string(status.message()));
    }
  } else {
    swapped.result = In(with_lane);
  }
  if (swapped.result == 0) {
    place_.Moved(out, with_lane);
  } else {
    place_.Refused(out);
  }
  around_.held->environment.daemon->Post(swapped);
}

}  // namespace worker

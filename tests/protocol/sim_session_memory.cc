// SimSession, second part: what is decided elsewhere about its memory
// (daemon/worker/lane_membership.cc, swap_orders.cc).
#include <utility>

#include "tests/protocol/sim_session.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

}  // namespace

bool SimSession::Restore() {
  if (ranges_.Restore() != CUDA_SUCCESS) return false;
  uint64_t bytes = ranges_.bytes();
  if (program_->swapped().held) {
    for (const std::pair<uint64_t, uint64_t>& range : program_->swapped().ranges)
      bytes += range.second;
    place_.Moved(true, false);
    lane_.gate().OnSwappedOut();
    lane_.assigned().Gone();
  }
  requests_.Inherit(bytes);
  if (bytes < program_->persistent_units * kUnit) return false;
  if (program_->lane_units != 0) program_->ring.push_front({Op::kLane, program_->lane_units});
  return true;
}

// --- persistent memory ---------------------------------------------------------------------------

SimSession::Get<CUresult> SimSession::Allocate(uint64_t bytes) {
  const uint64_t address = program_->next_address;
  const std::function<CUresult()> map = [this, address, bytes] {
    return ranges_.Map(address, bytes);
  };
  const CUresult result = co_await requests_.TakeAndMap(bytes, &map);
  if (result == CUDA_SUCCESS) program_->next_address += bytes;
  co_return result;
}

void SimSession::FreeRange() {
  if (ranges_.ranges().empty()) return;
  const uint64_t bytes = ranges_.Unmap(ranges_.ranges().begin()->first);
  program_->persistent_units -= bytes / kUnit;
  requests_.GiveBack(bytes);
}

// --- the lane ------------------------------------------------------------------------------------

SimSession::Task SimSession::WaitUntilQuiet() {
  while (!lane_.is_still() && Alive()) co_await turns_.NextTurn();
}

// What JoinToldLane waits for in a worker is waited for here: an attempt gives no turn away.
SimSession::Get<SimRequests::Answer> SimSession::AskForLane(uint64_t bytes, bool* told) {
  using Event = worker::RoomRequest::Event;
  const std::optional<wire::AssignLane> answer = co_await requests_.AskForLane(bytes);
  *told = answer.has_value();
  if (!*told) co_return SimRequests::Answer{Event::kUndecided};
  if (answer->result != 0)
    co_return SimRequests::Answer{Event::kRefused, static_cast<CUresult>(answer->result)};
  if (lane_.number() != lane_.assigned().told()) co_await WaitUntilQuiet();
  co_return SimRequests::Answer{Event::kDecided};
}

SimSession::Get<CUresult> SimSession::GrowInLane(uint64_t bytes) {
  if (!lane_.assigned().MustAsk(bytes, 0, lane_.number() != 0)) co_return CUDA_SUCCESS;
  bool told = false;  // lanewayd has said which lane
  SimRequests::Plan plan;
  plan.ask = [this, bytes, &told] { return AskForLane(bytes, &told); };
  plan.take = [this, bytes] { return requests_.NoteGrantedLane(&lane_.assigned(), bytes); };
  plan.undo = [this] { lane_.assigned().Granted(0); };
  plan.attempts = {[&] { return told ? lane_.Change(lane_.assigned().told()) : CUDA_SUCCESS; },
                   [this] { return lane_.EnterGranted(); },
                   [this, bytes] { return lane_.Reserve(bytes); }};
  const worker::GrantResult grown = co_await requests_.Run(&plan);
  if (grown.grant != worker::Grant::kGranted) co_return ToCall(grown);
  lane_.assigned().Grown(bytes);
  co_return lane_.EnterGranted();
}

SimSession::Task SimSession::GiveLaneBack() {
  co_await WaitUntilQuiet();
  if (!Alive()) co_return;
  lane_.Forsake();
  lane_.assigned().GivenBack();
  program_->lane_units = 0;
  (void)co_await requests_.AskForLane(0);
}

// --- to the host and back ------------------------------------------------------------------------

// Whether it has gone.
bool SimSession::SwapOut(bool with_lane) {
  const bool takes = requests_.TakesMemory();
  if (lane_.MayGoOut(with_lane, takes) != worker::LaneAction::kMayGo) return false;
  if (!scene_->calm && scene_->dice.OneIn(10)) return false;  // the disk is full
  ranges_.SwapOut(with_lane);
  lane_.Forsake();
  lane_.gate().OnSwappedOut();
  lane_.assigned().Gone();
  return true;
}

uint32_t SimSession::SwapIn(bool with_lane) {
  if (const uint64_t lane = lane_.assigned().ForReturn(); lane != 0) (void)lane_.Change(lane);
  CUresult result = CUDA_SUCCESS;
  if (with_lane) result = lane_.gate().TakeLane() ? lane_.Enter() : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) result = ranges_.SwapIn();
  if (result != CUDA_SUCCESS) {
    lane_.Forsake();
    lane_.gate().OnSwappedOut();
    return result;
  }
  if (with_lane) lane_.WriteBack();
  lane_.gate().OnSwappedIn();
  return 0;
}

void SimSession::DoSwap(bool out, bool with_lane) {
  wire::Swapped swapped;
  swapped.session_id = id_;
  swapped.out = out;
  if (out) {
    swapped.result = SwapOut(with_lane) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    swapped.result = SwapIn(with_lane);
  }
  if (swapped.result == 0) {
    place_.Moved(out, with_lane);
  } else {
    place_.Refused(out);
  }
  environment_.daemon->Post(swapped);
  scene_->Change();
  PROTOCOL_SAY(scene_, "session %lu %s the host (%u)", id_, out ? "goes to" : "leaves",
               swapped.result);
}

}  // namespace protocol

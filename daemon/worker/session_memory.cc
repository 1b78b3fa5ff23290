// What is decided elsewhere about a session's memory: its lane, the way to the host and back.
//
// What changes mappings runs on the session's thread while nothing of it is on the device.
#include <algorithm>
#include <utility>

#include "daemon/worker/lanes.h"
#include "daemon/worker/poll_device.h"
#include "daemon/worker/session_impl.h"
#include "ipc/calls/limits.h"
#include "ipc/overloaded.h"

namespace worker {
namespace {

namespace wire = ipc::control;

}  // namespace

// --- persistent memory ---------------------------------------------------------------------------

CUresult SessionImpl::AskForMemory(uint64_t bytes) { return ToCall(requests_.Take(bytes)); }

CUresult SessionImpl::MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) {
  return ToCall(requests_.TakeAndMap(bytes, map));
}

// --- the lane ------------------------------------------------------------------------------------

bool SessionImpl::WaitUntilQuiet() {
  bool is_quiet = false;
  PollDevice([&] {
    is_quiet = !hand_over_.under_way() && held_.StreamsIdle();
    return is_quiet || !life_.Alive();
  });
  return is_quiet;
}

CUresult SessionImpl::EnterLane() {
  LaneMember* const member = held_.arena.lane_member();
  if (turn_.entered || member->lane() == 0) return CUDA_SUCCESS;
  const CUresult result = held_.arena.lanes()->Enter(member);
  if (result == CUDA_SUCCESS) Step(&turn_, LaneEvent::kEntered, {});
  return result;
}

CUresult SessionImpl::EnterGrantedLane() {
  const uint64_t lane = held_.arena.lane_member()->lane();
  const bool granted =
      gate_ == nullptr || (wire::IsOwnLane(lane) ? !gate_->closed() : gate_->OpensInto(lane));
  const CUresult result = granted ? EnterLane() : CUDA_SUCCESS;
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;  // AwaitLane
}

void SessionImpl::ExitLane() {
  if (!turn_.entered) return;
  Step(&turn_, LaneEvent::kExited, {});
  held_.arena.lanes()->Exit(held_.arena.lane_member());
}

void SessionImpl::ForsakeLane() {
  ExitLane();
  held_.arena.lanes()->Leave(held_.arena.lane_member());
}

void SessionImpl::ReclaimLane() {
  LaneMember* const member = held_.arena.lane_member();
  if (!member->has_spare() || !turn_.at_boundary || hand_over_.under_way()) return;
  // What another worker kept for it is told again until the replay is complete.
  if (life_.Replays() || !held_.StreamsIdle()) return;
  if (const uint64_t bytes = held_.arena.lanes()->Reclaim(member); bytes != 0)
    requests_.GiveBack(bytes);
  if (turn_.entered && !held_.arena.lanes()->Inside(member)) Step(&turn_, LaneEvent::kExited, {});
}

// Its reservation goes along. REQUIRES: quiet, and nothing of it lives in the lane that it leaves.
CUresult SessionImpl::ChangeLane(uint64_t lane) {
  LaneMember* const member = held_.arena.lane_member();
  if (member->lane() == lane) return CUDA_SUCCESS;
  ForsakeLane();
  const CUresult result = held_.arena.lanes()->Join(member, lane, lane_.device());
  return result == CUDA_SUCCESS ? held_.arena.lanes()->ReserveAgain(member, lane_.bytes()) : result;
}

CUresult SessionImpl::GrowInLane(uint64_t bytes) {
  const uint64_t wanted = RoundUpToExtent(bytes);
  if (!lane_.MustAsk(wanted, handlers_.call().device, held_.arena.lane_member()->lane() != 0))
    return CUDA_SUCCESS;
  bool told = false;  // lanewayd has said which lane
  RoomPlan plan;
  plan.ask = [&]() -> RoomPlan::Answer {
    const std::optional<wire::AssignLane> answer =
        requests_.AskForLane({session_id_, wanted, static_cast<uint32_t>(lane_.device())});
    told = answer.has_value();
    if (!told) return {RoomRequest::Event::kUndecided};
    if (answer->result == 0) return {RoomRequest::Event::kDecided};
    return {RoomRequest::Event::kRefused, static_cast<CUresult>(answer->result)};
  };
  // Only a session that is inside changes the size of its lane.
  plan.attempts = {{[&] { return told ? JoinToldLane(wanted) : CUDA_SUCCESS; }, {}},
                   {[this] { return EnterGrantedLane(); }, [] { return uint64_t{0}; }},
                   {[&] { return held_.arena.ReserveLane(handlers_.call().device, wanted); },
                    [&] { return LacksInLane(wanted); }}};
  const GrantResult grown = requests_.Run(plan);
  if (grown.grant != Grant::kGranted) return ToCall(grown);
  lane_.Grown(wanted);
  return EnterGrantedLane();
}

CUresult SessionImpl::JoinToldLane(uint64_t wanted) {
  LaneMember* const member = held_.arena.lane_member();
  const uint64_t lane = lane_.told();
  if (member->lane() != lane && !WaitUntilQuiet()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ChangeLane(lane);
  if (result != CUDA_SUCCESS || turn_.entered || !life_.Replays()) return result;
  // A reservation that it had in another worker: lanewayd holds it to its limit where it asks for
  // more.
  return held_.arena.lanes()->ReserveAgain(member, wanted);
}

uint64_t SessionImpl::LacksInLane(uint64_t wanted) {
  const uint64_t have = held_.arena.lane_member()->reserved_bytes();
  return wanted > have ? wanted - have : 0;
}

// While it waits for lanewayd, no boundary comes: it leaves a lane that it is to leave, when
// nothing of it lies there.
void SessionImpl::LeaveWhileWaiting() {
  if (gate_ != nullptr && gate_->state() == GateState::kRevoked) OnLane(LaneEvent::kWait);
}

// Only then lanewayd hears of it, and may give the lane to the next.
CUresult SessionImpl::GiveLaneBack() {
  if (PinsLane()) return CUDA_ERROR_NOT_READY;
  if (!WaitUntilQuiet()) return CUDA_SUCCESS;
  ForsakeLane();
  lane_.GivenBack();
  (void)requests_.AskForLane({session_id_, 0, static_cast<uint32_t>(lane_.device())});
  return CUDA_SUCCESS;
}

// --- decisions -----------------------------------------------------------------------------------

void SessionImpl::Obey(const Decision& decision) {
  std::visit(ipc::Overloaded{
                 [this](const wire::Swap& swap) {
                   place_.Ordered(swap.out != 0);
                   Post([this, swap] { DoSwap(swap.out != 0, swap.with_lane != 0); });
                 },
                 [this](const wire::AssignLane& assign) {
                   if (assign.result == 0) lane_.Told(assign.lane);
                   if (assign.answer != 0) return parking_.Keep(assign);
                   Post([this, told = assign.lane] {
                     if (const uint64_t lane = lane_.Obey(told, place_.on_host()); lane != 0)
                       (void)ChangeLane(lane);
                   });
                 },
                 [this](const wire::MemoryAnswer& answer) { parking_.Keep(answer); },
             },
             decision);
}

absl::Status SessionImpl::SwapOut(bool with_lane) {
  LaneFacts facts;
  facts.uses_lane = lane_.uses();
  facts.pinned = PinsLane();
  facts.on_host = held_.arena.swapped();
  facts.with_lane = with_lane;
  facts.takes_memory = requests_.TakesMemory();
  switch (Step(&turn_, LaneEvent::kOrderedOut, facts)) {
    case LaneAction::kMayGo:
      break;
    case LaneAction::kRefuseAlreadyOut:
      return absl::FailedPreconditionError("it is there already");
    case LaneAction::kRefuseInIteration:
      return absl::FailedPreconditionError("it has begun an iteration");
    default:
      return absl::FailedPreconditionError("it is about to take what it was granted");
  }
  if (const absl::Status saved = held_.arena.SwapOut(with_lane); !saved.ok()) return saved;
  ForsakeLane();
  gate_->Abandon();
  lane_.Gone();
  return absl::OkStatus();
}

CUresult SessionImpl::SwapIn(bool with_lane) {
  if (const uint64_t lane = lane_.ForReturn(); lane != 0) (void)ChangeLane(lane);
  CUresult result = CUDA_SUCCESS;
  if (with_lane) result = gate_->TakeLane() ? EnterLane() : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) result = held_.arena.SwapIn();
  if (result == CUDA_SUCCESS) {
    gate_->Return();
  } else {
    ForsakeLane();  // a session that is not back is in no lane, as lanewayd counts
    gate_->Abandon();
  }
  return result;
}

void SessionImpl::DoSwap(bool out, bool with_lane) {
  wire::Swapped swapped;
  swapped.session_id = session_id_;
  swapped.out = out;
  if (out) {
    const absl::Status status = SwapOut(with_lane);
    if (!status.ok()) {
      swapped.result = CUDA_ERROR_OUT_OF_MEMORY;
      wire::SetText(swapped.sentence, std::string(status.message()));
    }
  } else {
    swapped.result = SwapIn(with_lane);
  }
  // Before the answer: a daemon that is told of this session meanwhile hears of one place.
  if (swapped.result == 0) {
    place_.Moved(out, with_lane);
  } else {
    place_.Refused(out);
  }
  environment_.daemon->Post(swapped);
}

}  // namespace worker

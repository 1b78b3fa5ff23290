#include "daemon/worker/lane_membership.h"

#include <optional>

#include "daemon/worker/lanes.h"
#include "daemon/worker/poll_device.h"

namespace worker {
namespace {

namespace wire = ipc::control;

}  // namespace

// --- in and out ----------------------------------------------------------------------------------

CUresult LaneMembership::Enter() {
  if (is_inside() || member_.lane() == 0) return CUDA_SUCCESS;
  return lanes_.Enter(&member_);
}

// A session waits at its gate for the one before it, so CUDA_ERROR_NOT_READY is no error here.
CUresult LaneMembership::EnterGranted() {
  if (!around_.is_granted(member_.lane())) return CUDA_SUCCESS;
  const CUresult result = Enter();
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

// The lane may have grown while other sessions held it.
CUresult LaneMembership::EnterForTurn() {
  if (lane_.Lacks(member_.lane() != 0)) {
    const CUresult grown = GrowInLane(lane_.bytes());
    if (grown != CUDA_SUCCESS) return grown;
  }
  return ToCall(around_.requests->Run(
      {.attempts = {{[this] { return EnterGranted(); }, [] { return uint64_t{0}; }}}}));
}

void LaneMembership::Exit() {
  if (is_inside()) lanes_.Exit(&member_);
}

void LaneMembership::Leave() {
  Exit();
  lanes_.Leave(&member_);
}

void LaneMembership::Reclaim() {
  if (const uint64_t bytes = lanes_.Reclaim(&member_); bytes != 0)
    around_.requests->GiveMemoryBack(bytes);
  if (is_pinned()) return;
  if (const uint64_t now = lane_.FollowLate(); now != 0) (void)Change(now);
}

// --- which lane, and how much of it --------------------------------------------------------------

bool LaneMembership::WaitUntilQuiet() const {
  bool is_quiet = false;
  PollDevice([&] {
    is_quiet = around_.is_quiet();
    return is_quiet || !around_.life->Alive();
  });
  return is_quiet;
}

// The session's reservation goes along.
CUresult LaneMembership::Change(uint64_t lane) {
  if (member_.lane() == lane) return CUDA_SUCCESS;
  Leave();
  const CUresult result = lanes_.Join(&member_, lane, lane_.device());
  return result == CUDA_SUCCESS ? lanes_.ReserveAgain(&member_, lane_.bytes()) : result;
}

void LaneMembership::FollowTold(uint64_t lane, bool away, bool occupied) {
  const bool stays = occupied && lane != member_.lane();
  if (const uint64_t now = lane_.Follow(lane, away, stays); now != 0) (void)Change(now);
}

void LaneMembership::JoinForReturn() {
  if (const uint64_t lane = lane_.ForReturn(); lane != 0) (void)Change(lane);
}

CUresult LaneMembership::GrowInLane(uint64_t bytes) {
  const uint64_t wanted = RoundUpToExtent(bytes);
  const int device = around_.call->device;
  if (!lane_.MustAsk(wanted, device, member_.lane() != 0)) return CUDA_SUCCESS;
  bool told = false;  // lanewayd has said which lane
  RoomPlan plan;
  plan.ask = [&]() -> RoomPlan::Answer {
    const std::optional<wire::AssignLane> answer = around_.requests->AskForLane(
        {around_.session_id, wanted, static_cast<uint32_t>(lane_.device())});
    told = answer.has_value();
    if (!told) return {RoomRequest::Event::kUndecided};
    if (answer->result == 0) return {RoomRequest::Event::kDecided};
    return {RoomRequest::Event::kRefused, static_cast<CUresult>(answer->result)};
  };
  plan.take = [&] { return around_.requests->NoteGrantedLane(&lane_, wanted); };
  plan.undo = [this] { lane_.Granted(0); };
  // Only a session that is inside changes the size of its lane.
  plan.attempts = {{[&] { return told ? JoinTold(wanted) : CUDA_SUCCESS; }, {}},
                   {[this] { return EnterGranted(); }, [] { return uint64_t{0}; }},
                   {[&] { return around_.held->arena.ReserveLane(device, wanted); },
                    [&] { return Lacks(wanted); }}};
  const GrantResult grown = around_.requests->Run(plan);
  if (grown.grant != Grant::kGranted) return ToCall(grown);
  lane_.Grown(wanted);
  return EnterGranted();
}

CUresult LaneMembership::JoinTold(uint64_t wanted) {
  const uint64_t lane = lane_.told();
  if (member_.lane() != lane && !WaitUntilQuiet()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = Change(lane);
  if (result != CUDA_SUCCESS || is_inside() || !around_.life->Replays()) return result;
  // A reservation that the session had in another worker: lanewayd holds the session to its limit
  // where it asks for more.
  return lanes_.ReserveAgain(&member_, wanted);
}

uint64_t LaneMembership::Lacks(uint64_t wanted) const {
  const uint64_t have = member_.reserved_bytes();
  return wanted > have ? wanted - have : 0;
}

// lanewayd hears of it once the session has left the lane, and may give the lane to the next.
CUresult LaneMembership::GiveLaneBack() {
  if (is_pinned()) return CUDA_ERROR_NOT_READY;
  if (!WaitUntilQuiet()) return CUDA_SUCCESS;
  Leave();
  lane_.GivenBack();
  (void)around_.requests->AskForLane(
      {around_.session_id, 0, static_cast<uint32_t>(lane_.device())});
  return CUDA_SUCCESS;
}

}  // namespace worker

// What is decided elsewhere about a session's memory: room for persistent memory, its lane, the way
// to the host and back.
//
// Growth asks lanewayd first and waits inside the call until there is room: others' memory is never
// a reason for an error. Without a daemon the keeper alone decides. What changes mappings runs on
// the session's thread while nothing of it is on the device.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session_impl.h"
#include "ipc/calls/limits.h"
#include "ipc/overloaded.h"

namespace worker {
namespace {

namespace wire = ipc::control;
constexpr int64_t kKeeperRetryUs = 5'000;
constexpr int64_t kNapUs = 250'000;
constexpr absl::Duration kFreeWaitStep = absl::Microseconds(50);
constexpr absl::Duration kQuietStep = absl::Microseconds(50);

}  // namespace

// --- questions -----------------------------------------------------------------------------------

template <class Answer>
std::optional<Answer> SessionImpl::Ask(ipc::WaitState reason,
                                       const ipc::control::WorkerToDaemon& question) {
  answered_by_ = 0;
  if (environment_.daemon == nullptr) return std::nullopt;
  const Parking::Waiting waiting(&parking_, reason);
  uint64_t asked = 0;
  std::optional<Answer> answer;
  const auto over = [&] {
    const uint64_t daemon = environment_.daemon->Daemon();
    // A session on the host has nothing to go on with: the next daemon brings it back.
    if (!life_.Alive() || (daemon == 0 && !lane_.away())) return true;
    if (asked != daemon && daemon != 0) {
      parking_.Expect();
      environment_.daemon->Post(question);
    }
    asked = daemon;
    answer = parking_.Take<Answer>();
    if (answer.has_value()) return true;
    // Nothing of it lies in the lane that it is to leave: no boundary comes while it waits here.
    const bool leaves = gate_ != nullptr && gate_->state() == GateState::kRevoked &&
                        (!lane_.uses() || (at_boundary_ && !PinsLane()));
    if (leaves) LeaveLane();
    return false;
  };
  parking_.Until({.over = over,
                  .nap_us = [] { return kNapUs; },
                  .in_between = [this] { held_.frees.Poll(); }});
  parking_.ExpectNone();
  if (answer.has_value()) answered_by_ = asked;
  return answer;
}

template <class Answer>
std::optional<Answer> SessionImpl::AskForRoom(ipc::WaitState reason,
                                              const ipc::control::WorkerToDaemon& question) {
  for (;;) {
    const uint64_t given_back = given_back_;
    const std::optional<Answer> answer = Ask<Answer>(reason, question);
    if (!answer.has_value() || answer->result == 0) return answer;
    WaitForFrees();
    if (given_back_ == given_back || !life_.Alive()) return answer;
  }
}

// --- persistent memory ---------------------------------------------------------------------------

CUresult SessionImpl::AskForMemory(uint64_t bytes, bool* undecided) {
  for (;;) {
    const std::optional<wire::MemoryAnswer> answer = AskForRoom<wire::MemoryAnswer>(
        ipc::WaitState::kMemory,
        wire::MemoryNeeded{session_id_, bytes, static_cast<uint32_t>(handlers_.call().device)});
    if (answer.has_value() && answer->result != 0) return static_cast<CUresult>(answer->result);
    if (!life_.Alive()) return CUDA_ERROR_OUT_OF_MEMORY;  // no reply follows
    // A new daemon is told of these bytes by Snapshot(), or asked for them: it does not count what
    // an earlier daemon has granted since.
    const std::lock_guard<std::mutex> lock(told_mutex_);
    if (HasDaemon() && environment_.daemon->Daemon() != answered_by_) continue;
    asked_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (undecided != nullptr) *undecided = !answer.has_value();
    return CUDA_SUCCESS;
  }
}

bool SessionImpl::HasDaemon() const {
  return environment_.daemon != nullptr && environment_.daemon->Daemon() != 0;
}

void SessionImpl::GiveMemoryBack(uint64_t bytes) {
  asked_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  ++given_back_;
  if (HasDaemon()) environment_.daemon->Post(wire::MemoryFreed{session_id_, bytes});
}

void SessionImpl::FreeRange(CUdeviceptr address) {
  const uint64_t bytes = held_.arena.RangeBytes(address);
  if (held_.arena.Free(address) == CUDA_SUCCESS) GiveMemoryBack(bytes);
  held_.addresses.Gone(address);
}

// lanewayd counts what it knows of; memory that it does not know of (a stray worker's) may still be
// in the way for a while.
bool SessionImpl::WaitForMemory(uint64_t bytes) {
  if (!held_.arena.OthersHold(handlers_.call().device, bytes)) return false;
  const Parking::Waiting waiting(&parking_, ipc::WaitState::kMemory);
  if (gate_ != nullptr) gate_->Settle();  // no work comes soon
  takes_memory_ = true;
  parking_.Nap(kKeeperRetryUs);
  takes_memory_ = false;
  return life_.Alive();
}

// Room may come back when work that uses freed memory ends (the program would have waited for that
// in its own cuMemFree), or when others give theirs up.
CUresult SessionImpl::WhenThereIsRoom(uint64_t bytes, const std::function<CUresult()>& attempt,
                                      bool undecided) {
  const auto attempt_or_ask = [&] { return undecided && HasDaemon() ? kAskAgain : attempt(); };
  held_.frees.Poll();
  CUresult result = attempt_or_ask();
  while (result == CUDA_ERROR_OUT_OF_MEMORY && life_.Alive()) {
    const bool all_free = held_.frees.Poll();
    result = attempt_or_ask();
    if (result != CUDA_ERROR_OUT_OF_MEMORY) break;
    if (!all_free) {
      absl::SleepFor(kFreeWaitStep);
    } else if (!WaitForMemory(bytes)) {
      break;
    }
  }
  return result;
}

CUresult SessionImpl::MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) {
  for (;;) {
    bool undecided = false;
    CUresult result = AskForMemory(bytes, &undecided);
    if (result != CUDA_SUCCESS) return result;
    result = WhenThereIsRoom(bytes, map, undecided);
    if (result != CUDA_SUCCESS) GiveMemoryBack(bytes);
    if (result != kAskAgain) return result;
  }
}

void SessionImpl::WaitForFrees() {
  if (held_.frees.Poll()) return;
  const Parking::Waiting waiting(&parking_, ipc::WaitState::kMemory);
  while (!held_.frees.Poll() && life_.Alive()) absl::SleepFor(kFreeWaitStep);
}

// --- the lane ------------------------------------------------------------------------------------

bool SessionImpl::WaitUntilQuiet() {
  while (undone_.load() != 0 || !held_.StreamsIdle()) {
    if (!life_.Alive()) return false;
    absl::SleepFor(kQuietStep);
  }
  return true;
}

CUresult SessionImpl::EnterLane() {
  LaneMember* const member = held_.arena.lane_member();
  if (inside_ || member->lane() == 0) return CUDA_SUCCESS;
  const CUresult result = held_.arena.lanes()->Enter(member);
  inside_ = result == CUDA_SUCCESS;
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
  if (std::exchange(inside_, false)) held_.arena.lanes()->Exit(held_.arena.lane_member());
}

void SessionImpl::ForsakeLane() {
  ExitLane();
  held_.arena.lanes()->Leave(held_.arena.lane_member());
}

void SessionImpl::ReclaimLane() {
  LaneMember* const member = held_.arena.lane_member();
  if (!member->has_spare() || !at_boundary_ || undone_.load() != 0) return;
  // What another worker kept for it is told again until the replay is complete.
  if (life_.Replays() || !held_.StreamsIdle()) return;
  if (const uint64_t bytes = held_.arena.lanes()->Reclaim(member); bytes != 0)
    GiveMemoryBack(bytes);
  inside_ = inside_ && held_.arena.lanes()->Inside(member);
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
  CUresult result = kAskAgain;
  while (result == kAskAgain) result = TryGrowInLane(wanted);
  if (result != CUDA_SUCCESS) return result;
  lane_.Grown(wanted);
  return EnterGrantedLane();
}

CUresult SessionImpl::TryGrowInLane(uint64_t wanted) {
  const std::optional<wire::AssignLane> answer = AskForRoom<wire::AssignLane>(
      ipc::WaitState::kLane,
      wire::LaneNeeded{session_id_, wanted, static_cast<uint32_t>(lane_.device())});
  CUresult result = CUDA_SUCCESS;
  if (!life_.Alive()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (answer.has_value()) {
    if (answer->result != 0) return static_cast<CUresult>(answer->result);
    const uint64_t lane = lane_.told();
    if (held_.arena.lane_member()->lane() != lane && !WaitUntilQuiet())
      return CUDA_ERROR_OUT_OF_MEMORY;
    result = ChangeLane(lane);
    // What it had in another worker: lanewayd holds it to its limit where it asks for more.
    if (result == CUDA_SUCCESS && !inside_ && life_.Replays())
      result = held_.arena.lanes()->ReserveAgain(held_.arena.lane_member(), wanted);
  }
  const bool undecided = !answer.has_value();
  // Only who is inside changes its size.
  if (result == CUDA_SUCCESS)
    result = WhenThereIsRoom(
        0, [this] { return EnterGrantedLane(); }, undecided);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t have = held_.arena.lane_member()->reserved_bytes();
  return WhenThereIsRoom(
      wanted > have ? wanted - have : 0,
      [&] { return held_.arena.ReserveLane(handlers_.call().device, wanted); }, undecided);
}

// Only then lanewayd hears of it, and may give the lane to the next.
CUresult SessionImpl::GiveLaneBack() {
  if (PinsLane()) return CUDA_ERROR_NOT_READY;
  if (!WaitUntilQuiet()) return CUDA_SUCCESS;
  ForsakeLane();
  lane_.GivenBack();
  (void)Ask<wire::AssignLane>(
      ipc::WaitState::kLane,
      wire::LaneNeeded{session_id_, 0, static_cast<uint32_t>(lane_.device())});
  return CUDA_SUCCESS;
}

// --- decisions -----------------------------------------------------------------------------------

void SessionImpl::Obey(const Decision& decision) {
  std::visit(ipc::Overloaded{
                 [this](const wire::Swap& swap) {
                   (swap.out != 0 ? going_out_ : coming_in_).store(true);
                   Post([this, swap] { DoSwap(swap.out != 0, swap.with_lane != 0); });
                 },
                 [this](const wire::AssignLane& assign) {
                   if (assign.result == 0) lane_.Told(assign.lane);
                   if (assign.answer != 0) return parking_.Keep(assign);
                   Post([this, told = assign.lane] {
                     if (const uint64_t lane = lane_.Obey(told); lane != 0) (void)ChangeLane(lane);
                   });
                 },
                 [this](const wire::MemoryAnswer& answer) { parking_.Keep(answer); },
             },
             decision);
}

// It was granted some, in a message that came before the one that is obeyed now, and has it not
// yet.
bool SessionImpl::TakesMemory() { return takes_memory_ || parking_.HasAnswer(); }

void SessionImpl::DoSwap(bool out, bool with_lane) {
  wire::Swapped swapped;
  swapped.session_id = session_id_;
  swapped.out = out;
  if (out) {
    const absl::Status status =
        held_.arena.swapped() ? absl::FailedPreconditionError("it is there already")
        : !lane_.MayGo(inside_, at_boundary_ && !PinsLane(), with_lane)
            ? absl::FailedPreconditionError("it has begun an iteration")
        : TakesMemory() ? absl::FailedPreconditionError("it is about to take what it was granted")
                        : held_.arena.SwapOut(with_lane);
    if (status.ok()) {
      ForsakeLane();
      gate_->Abandon();
      lane_.Gone(with_lane);
    } else {
      swapped.result = CUDA_ERROR_OUT_OF_MEMORY;
      wire::SetText(swapped.sentence, std::string(status.message()));
    }
  } else {
    if (const uint64_t lane = lane_.ForReturn(); lane != 0) (void)ChangeLane(lane);
    if (with_lane) swapped.result = gate_->TakeLane() ? EnterLane() : CUDA_ERROR_OUT_OF_MEMORY;
    if (swapped.result == 0) swapped.result = held_.arena.SwapIn();
    if (swapped.result == 0) {
      gate_->Return();
      lane_.Back();
    } else {
      ForsakeLane();  // whoever is not back is in no lane, as lanewayd counts
      gate_->Abandon();
    }
  }
  // Before the answer: a daemon that is told of this session meanwhile hears either of the two.
  (out ? going_out_ : coming_in_).store(false);
  environment_.daemon->Post(swapped);
}

}  // namespace worker

// A session at the gate: when messages may be taken, how the lane is left, what else its thread
// does.
//
// The gate is asked before a message is taken, so what waits stays in the ring: a session that
// waits here with nothing on the device can be moved to another worker with all that it has not
// done yet.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/worker/session_impl.h"
#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"

namespace worker {
namespace {

constexpr int64_t kRetryUs = 500;         // until the device has finished
constexpr int64_t kNapUs = 250'000;       // whatever matters rings the doorbell; this is only a net
constexpr int64_t kShortRestUs = 50'000;  // not worth telling of when nobody waits

}  // namespace

// A message that comes soon is worth looking out for, but not on a processor that the device's own
// threads may want: they would wait for this one until it sleeps.
int64_t SessionImpl::SpinUs() const {
  return environment_.on_processors && busy_ ? 0 : ipc::limits::kSpinUs;
}

int64_t SessionImpl::Patience(int64_t patience_us) const {
  return handover_.quiet() ? patience_us : std::min(patience_us, unquiet_us_);
}

bool SessionImpl::PassGate() {
  if (parking_.IsPoked()) (void)parking_.RunCommands();
  if (IsItsTurn()) return true;
  if (gate_->state() == GateState::kRevoked) OnLane(LaneEvent::kLook);
  if (!gate_->closed() && !gate_->resting()) return TryEnterLane();
  const int64_t nap_us = gate_->rests_untold() ? kShortRestUs : kNapUs;
  const std::span<const std::byte> message =
      channel_.receiver->PeekUntrusted(SpinUs(), Patience(nap_us));
  if (message.empty()) {
    if (channel_.receiver->broken()) return true;  // taking it tells
    OnSilence();
    return false;
  }
  if (!AwaitsTurn(message)) return true;
  gate_->Want();
  if (gate_->closed()) Park();
  clock_.Start(NowUs());
  return !gate_->closed() && TryEnterLane();
}

// The message is this side's copy, the one that is served when it is taken.
bool SessionImpl::AwaitsTurn(std::span<const std::byte> message) const {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  // What lies in the host's memory comes back before a part of it can go.
  if (op == ipc::Op::ArenaUnmap) return held_.arena.swapped();
  // A new worker is told of what an earlier one has kept already: nothing is taken out of the lane.
  if (op == ipc::Op::LaneKeep && life_.Replays()) return false;
  return IsWorkUntrusted(header.op);
}

bool SessionImpl::IsItsTurn() const {
  if (gate_ == nullptr) return true;
  return gate_->state() == GateState::kOpen && !gate_->resting() && HasItsLane();
}

// An open gate alone does not say so: since it was inside, it may have been to the host.
bool SessionImpl::HasItsLane() const { return !lane_.uses() || turn_.entered; }

// The lane may have grown while others held it. False also when it was told to leave meanwhile: a
// command that it runs while it waits here may be the way to the host.
bool SessionImpl::TryEnterLane() {
  if (!parking_.RunCommands()) return false;  // it may be told to change its lane first
  const bool lacks_lane = lane_.Lacks(held_.arena.lane_member()->lane() != 0);
  CUresult result = lacks_lane ? GrowInLane(lane_.bytes()) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    result = ToCall(requests_.Run(
        {.attempts = {{[this] { return EnterGrantedLane(); }, [] { return uint64_t{0}; }}}}));
  }
  if (result == CUDA_SUCCESS && !gate_->closed() && !HasItsLane()) AwaitLane();
  if (result == CUDA_SUCCESS || !life_.Alive())
    return result == CUDA_SUCCESS && HasItsLane() && !gate_->closed();
  life_.Lose("laneway: the driver does not map the session's lane; its session ends");
  return false;
}

// Its gate is open, and who was in the lane before has yet to leave it: told of another lane while
// the device was busy, for one. Nobody tells when it has.
void SessionImpl::AwaitLane() {
  const Parking::Waiting waiting(&parking_, ipc::WaitState::kTurn);
  parking_.Sleep(kRetryUs);
}

void SessionImpl::Park() {
  const Parking::Waiting waiting(&parking_, ipc::WaitState::kTurn);
  bool leaves = false;  // for another worker, from here
  parking_.Until({.over = [&] { return leaves || !life_.Alive() || !gate_->closed(); },
                  .nap_us = [this] { return Patience(kNapUs); },
                  .in_between =
                      [&] {
                        handover_.Publish();
                        ReclaimLane();
                        leaves = handover_.wanted() && handover_.quiet();
                        if (!leaves)
                          gate_->AwaitTurn([this] { return !life_.Alive() || handover_.wanted(); });
                      }});
  if (!life_.Alive() || handover_.wanted()) gate_->Settle();
}

void SessionImpl::OnSilence() {
  iteration_ends_.Settle();
  OnLane(LaneEvent::kSilence);
  handover_.Publish();
  (void)parking_.RunCommands();
  patience_us_ = std::min(patience_us_ * 2, kNapUs);
  if (gate_ == nullptr) return;
  if (gate_->resting()) {
    // The program may have ended its iteration since, without any more work: then others wait for a
    // lane in which nothing of it lies.
    gate_->Rest(MayLeave());
    if (NowUs() - rested_us_ >= kShortRestUs) gate_->TellRest();
    return;
  }
  if (!held_.StreamsIdle()) {
    unquiet_us_ = gate_->alone() ? std::min(unquiet_us_ * 2, kPatienceUs) : kUnquietUs;
    return;
  }
  clock_.Stop(progress_.get(), NowUs());
  ReclaimLane();
  rested_us_ = NowUs();
  gate_->Rest(MayLeave());
}

// --- leaving -------------------------------------------------------------------------------------

// What the session's surroundings say about its lane now. The client is ahead: its word about its
// blocks counts when all that it has sent before was taken.
LaneFacts SessionImpl::LaneNow() {
  LaneFacts facts;
  facts.gate = gate_ == nullptr ? GateState::kOpen : gate_->state();
  facts.uses_lane = lane_.uses();
  facts.pinned = facts.uses_lane && PinsLane();
  facts.client_is_done = facts.uses_lane && !turn_.at_boundary &&
                         file_.page()->lane_blocks.load(std::memory_order_acquire) == 0 &&
                         !channel_.receiver->Pending();
  // At the end of an iteration the lane changes hands when the device is done, and need not lie
  // idle until the client wakes up and says so.
  facts.waits_at_the_end = bell_.client_sleeps() && work_.is_complete();
  facts.iterates = clock_.Iterates(*progress_.get());
  return facts;
}

void SessionImpl::OnLane(LaneEvent event) {
  LaneFacts facts = LaneNow();
  if (event == LaneEvent::kSilence) facts.device_is_done = held_.StreamsIdle();
  if (Step(&turn_, event, facts) == LaneAction::kLeave) LeaveLane();
}

bool SessionImpl::MayLeave() {
  return Step(&turn_, LaneEvent::kRest, LaneNow()) == LaneAction::kMayGo;
}

bool SessionImpl::PinsLane() { return held_.arena.lanes()->Pinned(held_.arena.lane_member()); }

// The lane's memory may be another's only when the device has finished with it: one mapping's
// writes are visible through another only across completed work (CUDA's rule for aliased memory).
void SessionImpl::LeaveLane() {
  clock_.Stop(progress_.get(), NowUs());
  ipc::CountSwitch(&file_.page()->iteration_times);
  gate_->Close();
  std::vector<StreamTable::Stream*> busy = held_.streams.All();
  std::erase_if(busy, [this](const StreamTable::Stream* stream) {
    return driver_.cuStreamQuery(stream->driver) == CUDA_SUCCESS;
  });
  // The next session goes first: waking the client keeps the device's thread for longer.
  bell_.BeginHandOver(busy);
  hand_over_.Begin(busy.size());
  for (const StreamTable::Stream* const stream : busy) {
    if (callbacks_.After(stream->driver, &stream_done_) != CUDA_SUCCESS) NoteStreamDone();
  }
  NoteStreamDone();
}

void SessionImpl::NoteStreamDone() {
  if (!hand_over_.Part()) return;
  ExitLane();
  hand_over_.Finish();
  gate_->HandOver();
  bell_.EndHandOver();
}

CUresult SessionImpl::Boundary(const ipc::BoundaryInfo* info) {
  Step(&turn_, LaneEvent::kBoundary, {});
  work_.End();
  const int64_t began_us = clock_.began_us(), now_us = NowUs();
  const uint64_t held_us = clock_.EndIteration(*info, progress_.get(), now_us);
  const StreamTable::Stream* const last = handlers_.streams().last_work();
  iteration_ends_.OnBoundary(last == nullptr ? nullptr : last->driver, {began_us, now_us, held_us});
  ReclaimLane();
  if (gate_ == nullptr || gate_->closed()) return CUDA_SUCCESS;
  const bool revoked = gate_->state() == GateState::kRevoked;
  const bool over = !revoked && gate_->TurnIsOver();
  if (!revoked && !over) return CUDA_SUCCESS;
  LaneFacts facts = LaneNow();
  facts.turn_is_over = over;
  if (Step(&turn_, LaneEvent::kBoundary, facts) == LaneAction::kLeave) LeaveLane();
  return CUDA_SUCCESS;
}

// --- commands ------------------------------------------------------------------------------------

void SessionImpl::Post(std::function<void()> command) { parking_.Post(std::move(command)); }

// A command that cannot run now is tried again at the next silence, or when the lane is handed
// over. Deferred frees are done before the commands, for DoSwap saves all ranges that are still
// there.
bool SessionImpl::MayCommand() {
  return !hand_over_.under_way() && held_.StreamsIdle() && held_.frees.Poll();
}

}  // namespace worker

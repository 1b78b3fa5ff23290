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
  if (turn_.IsItsTurn()) return true;
  Gate* const gate = turn_.gate();
  turn_.OnLook();
  if (!gate->closed() && !gate->resting()) return TryEnterLane();
  const int64_t nap_us = gate->rests_untold() ? kShortRestUs : kNapUs;
  const std::span<const std::byte> message =
      channel_.receiver->PeekUntrusted(SpinUs(), Patience(nap_us));
  if (message.empty()) {
    if (channel_.receiver->broken()) return true;  // taking it tells
    OnSilence();
    return false;
  }
  if (!AwaitsTurn(message)) return true;
  gate->Want();
  if (gate->closed()) Park();
  iterations_.OnTurn();
  return !gate->closed() && TryEnterLane();
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

// False also when the session was told to leave meanwhile: a command that it runs while it waits
// here may be the way to the host.
bool SessionImpl::TryEnterLane() {
  if (!parking_.RunCommands()) return false;  // it may be told to change its lane first
  const CUresult result = lane_.EnterForTurn();
  const Gate& gate = *turn_.gate();
  if (result == CUDA_SUCCESS && !gate.closed() && !lane_.has_lane()) AwaitLane();
  if (result == CUDA_SUCCESS || !life_.Alive())
    return result == CUDA_SUCCESS && lane_.has_lane() && !gate.closed();
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
  Gate* const gate = turn_.gate();
  const Parking::Waiting waiting(&parking_, ipc::WaitState::kTurn);
  bool leaves = false;  // for another worker, from here
  parking_.Until({.over = [&] { return leaves || !life_.Alive() || !gate->closed(); },
                  .nap_us = [this] { return Patience(kNapUs); },
                  .in_between =
                      [&] {
                        handover_.Publish();
                        turn_.Reclaim();
                        leaves = handover_.wanted() && handover_.quiet();
                        if (!leaves)
                          gate->AwaitTurn([this] { return !life_.Alive() || handover_.wanted(); });
                      }});
  if (!life_.Alive() || handover_.wanted()) gate->Settle();
}

void SessionImpl::OnSilence() {
  Gate* const gate = turn_.gate();
  iterations_.CountEnded();
  turn_.OnSilence();
  handover_.Publish();
  (void)parking_.RunCommands();
  patience_us_ = std::min(patience_us_ * 2, kNapUs);
  if (gate == nullptr) return;
  if (gate->resting()) {
    // The program may have ended its iteration since, without any more work: then others wait for a
    // lane in which nothing of it lies.
    gate->Rest(MayLeave());
    if (NowUs() - rested_us_ >= kShortRestUs) gate->TellRest();
    return;
  }
  if (!held_.StreamsIdle()) {
    unquiet_us_ = gate->alone() ? std::min(unquiet_us_ * 2, kPatienceUs) : kUnquietUs;
    return;
  }
  iterations_.OnTurnEnds();
  turn_.Reclaim();
  rested_us_ = NowUs();
  gate->Rest(MayLeave());
}

}  // namespace worker

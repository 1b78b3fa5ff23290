#include "daemon/worker/turn_wait.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"

namespace worker {
namespace {

constexpr int64_t kLaneRetryUs = 500;     // no event tells when another session has left the lane
constexpr int64_t kNapUs = 250'000;       // whatever matters rings the doorbell; this is only a net
constexpr int64_t kShortIdleUs = 50'000;  // not worth telling of when no session waits

}  // namespace

// Spinning catches a message that comes soon. On a processor that a software device's threads may
// want, spinning would keep the device waiting.
int64_t TurnWait::SpinUs() const {
  return around_.held->environment.on_processors && busy_ ? 0 : ipc::limits::kSpinUs;
}

int64_t TurnWait::Patience(int64_t patience_us) const {
  return around_.handover->quiet() ? patience_us : std::min(patience_us, unquiet_us_);
}

// --- messages ------------------------------------------------------------------------------------

std::span<const std::byte> TurnWait::NextUntrusted(ipc::Receiver* receiver) {
  if (!Pass(receiver)) return {};
  const std::span<const std::byte> message =
      receiver->NextUntrusted(SpinUs(), Patience(patience_us_));
  if (message.empty() && !receiver->broken()) OnSilence();
  return message;
}

void TurnWait::OnTaken(bool is_work) {
  patience_us_ = kPatienceUs;
  unquiet_us_ = kUnquietUs;
  const Gate* const gate = around_.turn->gate();
  if (is_work) {
    busy_ = true;
  } else if (gate == nullptr || gate->idle()) {
    busy_ = false;
  }
}

// A session that came to its turn by spinning tells lanewayd itself, after its first work.
void TurnWait::OnServed() {
  const Gate* const gate = around_.turn->gate();
  if (gate != nullptr && gate->defers_report()) around_.turn->FlushReports();
}

// --- the gate ------------------------------------------------------------------------------------

bool TurnWait::Pass(ipc::Receiver* receiver) {
  if (around_.parking->IsPoked()) (void)around_.parking->RunCommands();
  if (around_.turn->IsItsTurn()) return true;
  Gate* const gate = around_.turn->gate();
  around_.turn->OnLook();
  if (!gate->closed() && !gate->idle()) return TryEnterLane();
  const int64_t nap_us = gate->idle_untold() ? kShortIdleUs : kNapUs;
  const std::span<const std::byte> message = receiver->PeekUntrusted(SpinUs(), Patience(nap_us));
  if (message.empty()) {
    if (receiver->broken()) return true;  // taking the message tells
    OnSilence();
    return false;
  }
  if (!AwaitsTurn(message)) return true;
  gate->ReportRunnable();
  if (gate->closed()) AwaitGate();
  around_.iterations->OnTurn();
  return !gate->closed() && TryEnterLane();
}

// The message is this side's copy, the one that is served when it is taken.
bool TurnWait::AwaitsTurn(std::span<const std::byte> message) const {
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  // A range that is swapped out comes back before a part of it can go, be moved or be shared.
  if (op == ipc::Op::ArenaUnmap || op == ipc::Op::ArenaMove || op == ipc::Op::ShareRange ||
      op == ipc::Op::MapShared) {
    return around_.held->arena.swapped();
  }
  // A new worker is told of what an earlier one has kept already: nothing is taken out of the lane.
  if (op == ipc::Op::LaneKeep && around_.life->Replays()) return false;
  return IsWorkUntrusted(header.op);
}

// Commands run first, because the session may be told to change its lane. False also when lanewayd
// has ordered the session out meanwhile: a command that runs during the wait may be a swap. An open
// gate without a lane means that the session before has yet to leave the lane: it was told of
// another one while the device was busy, for example. The gate may also have opened before this
// session could leave the lane of an earlier turn, because the device was busy with it.
bool TurnWait::TryEnterLane() {
  if (!around_.parking->RunCommands()) return false;
  around_.turn->Reclaim();
  const CUresult result = around_.lane->EnterForTurn();
  const Gate& gate = *around_.turn->gate();
  if (result == CUDA_SUCCESS && !gate.closed() && !around_.lane->has_lane()) {
    const Parking::Waiting waiting(around_.parking, ipc::WaitState::kTurn);
    around_.parking->Sleep(kLaneRetryUs);
  }
  if (result == CUDA_SUCCESS) return around_.lane->has_lane() && !gate.closed();
  if (around_.life->Alive())
    around_.life->Lose("laneway: the driver does not map the session's lane; its session ends");
  return false;
}

void TurnWait::AwaitGate() {
  Gate* const gate = around_.turn->gate();
  const SessionHandover& handover = *around_.handover;
  const SessionLife& life = *around_.life;
  const Parking::Waiting waiting(around_.parking, ipc::WaitState::kTurn);
  bool leaves = false;  // for another worker, from here
  around_.parking->Until({.over = [&] { return leaves || !life.Alive() || !gate->closed(); },
                          .nap_us = [this] { return Patience(kNapUs); },
                          .in_between =
                              [&] {
                                around_.handover->Publish();
                                around_.turn->Reclaim();
                                leaves = handover.wanted() && handover.quiet();
                                if (!leaves)
                                  gate->AwaitTurn(
                                      [&] { return !life.Alive() || handover.wanted(); });
                              }});
  if (!life.Alive() || handover.wanted()) gate->FlushReports();
}

// --- silence -------------------------------------------------------------------------------------

// An idle program may have ended its iteration since, without any more work: then other sessions
// wait for a lane in which nothing of it lies, so idleness is reported again at the boundary.
void TurnWait::OnSilence() {
  around_.iterations->CountEnded();
  around_.turn->OnSilence();
  around_.handover->Publish();
  (void)around_.parking->RunCommands();
  patience_us_ = std::min(patience_us_ * 2, kNapUs);
  Gate* const gate = around_.turn->gate();
  if (gate == nullptr) return;
  if (gate->idle()) {
    gate->ReportIdle(around_.turn->MayLeave());
    around_.turn->Reclaim();
    if (NowUs() - idle_since_us_ >= kShortIdleUs) gate->FlushIdleReport();
    return;
  }
  if (!around_.held->StreamsIdle()) {
    unquiet_us_ = gate->uncontended() ? std::min(unquiet_us_ * 2, kPatienceUs) : kUnquietUs;
    return;
  }
  around_.iterations->OnTurnEnds();
  around_.turn->Reclaim();
  idle_since_us_ = NowUs();
  gate->ReportIdle(around_.turn->MayLeave());
}

}  // namespace worker

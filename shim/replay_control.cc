#include "shim/replay_control.h"

#include "ipc/futex.h"

namespace shim {
namespace {

using Kind = ipc::ReplayMode::Kind;

ipc::ReplayState StateOf(const BenefitGate& gate) {
  switch (gate.state()) {
    case BenefitGate::State::kLearning:
      return ipc::ReplayState::kLearning;
    case BenefitGate::State::kComparing:
      return ipc::ReplayState::kComparing;
    case BenefitGate::State::kReplaying:
      return ipc::ReplayState::kReplaying;
    case BenefitGate::State::kForwarding:
      break;
  }
  return gate.ratio() == 0 ? ipc::ReplayState::kNothingRepeats : ipc::ReplayState::kSlower;
}

}  // namespace

void ReplayControl::Open(const ipc::ReplayMode& mode, ChunkSender* chunks, ipc::ClientWords* words,
                         MemoryAtBoundary* memory) {
  mode_ = mode;
  all_chunks_ = chunks;
  words_ = words;
  memory_ = memory;
  if (chunks == nullptr) return;
  chunks_ = chunks;
  TellMemory();
  if (mode.kind != Kind::kAuto) return Publish(ipc::ReplayState::kReplaying);
  chunks->MayHold(false);
  calls_to_learn_ = kCallsToLearn;
  Publish(ipc::ReplayState::kNoIterations);
}

void ReplayControl::EndIteration() {
  ++iterations_;
  if (mode_.kind == Kind::kAuto) Compare();
  if (mode_.kind == Kind::kVerify) chunks_->SetVerify(iterations_ % mode_.verify_every == 0);
  TellMemory();
}

// Freed memory may wait in the forwarded iterations of a comparison, too, so that they have the
// addresses of replayed ones.
void ReplayControl::TellMemory() {
  const bool holds = mode_.kind != Kind::kAuto ||
                     (iterations_ != 0 && gate_.state() != BenefitGate::State::kForwarding);
  if (holds == holds_freed_) return;
  holds_freed_ = holds;
  memory_->HoldFreed(holds);
}

// The first boundary begins the first iteration that the gate hears of. The message of a boundary
// goes alone.
void ReplayControl::Compare() {
  const BenefitGate::State before = gate_.state();
  if (iterations_ == 1) {
    calls_to_learn_ = 0;
    all_chunks_->MayHold(true);
  } else {
    BenefitGate::Iteration iteration;
    if (gate_.state() == BenefitGate::State::kComparing) {
      const int64_t now_ns = ipc::MonotonicNs();
      iteration.took_ns = now_ns - last_ns_;
      last_ns_ = now_ns;
      const uint64_t repeated = all_chunks_->counts().repeated;
      iteration.repeated = repeated - last_repeated_;
      last_repeated_ = repeated;
    }
    gate_.OnIteration(iteration);
  }
  chunks_ = gate_.replays() ? all_chunks_ : nullptr;
  if (iterations_ == 1 || gate_.state() != before) Publish(StateOf(gate_));
}

void ReplayControl::Publish(ipc::ReplayState state) {
  words_->replay_state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  words_->replay_permille.store(static_cast<uint32_t>(gate_.ratio() * 1000),
                                std::memory_order_relaxed);
}

}  // namespace shim

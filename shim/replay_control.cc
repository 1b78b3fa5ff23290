#include "shim/replay_control.h"

#include <algorithm>
#include <optional>

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
                         MemoryAtBoundary* memory, KeptVerdicts* verdicts) {
  mode_ = mode;
  all_chunks_ = chunks;
  words_ = words;
  memory_ = memory;
  verdicts_ = verdicts;
  if (chunks == nullptr) return;
  chunks_ = chunks;
  TellMemory();
  if (mode.kind != Kind::kAuto) return Publish(ipc::ReplayState::kReplaying);
  chunks->MayHold(false);
  calls_to_learn_ = kCallsToLearn;
  Publish(ipc::ReplayState::kNoIterations);
}

void ReplayControl::EndIteration(uint32_t body) {
  ++iterations_;
  if (mode_.kind == Kind::kAuto) Compare(body);
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
void ReplayControl::Compare(uint32_t body) {
  const BenefitGate::State before = gate_.state();
  if (iterations_ == 1) {
    calls_to_learn_ = 0;
    all_chunks_->MayHold(true);
  } else {
    Measure();
  }
  const double ratio = gate_.ratio();
  Judge(body, before);
  chunks_ = gate_.replays() ? all_chunks_ : nullptr;
  if (iterations_ == 1 || gate_.state() != before || gate_.ratio() != ratio)
    Publish(StateOf(gate_));
}

void ReplayControl::Measure() {
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

// Tells what was measured, and takes over what an earlier start has measured. The numbers of bodies
// count up; 0 is a body without one, also where the program says itself where iterations begin.
void ReplayControl::Judge(uint32_t body, BenefitGate::State before) {
  constexpr BenefitGate::State kComparing = BenefitGate::State::kComparing;
  const bool was_comparing = before == kComparing;
  if (was_comparing) verdicts_->OnCompared(body);
  if (was_comparing && gate_.state() != kComparing && gate_.ratio() != 0)
    verdicts_->Tell(gate_.ratio(), gate_.replays());
  const bool is_new = body > newest_body_ || iterations_ == 1;
  newest_body_ = std::max(newest_body_, body);
  if (is_new) gate_.OnNewBody();
  if (const std::optional<ipc::ReplayVerdict> kept = verdicts_->Find(is_new); kept.has_value()) {
    gate_.TakeVerdict(kept->replays != 0, ipc::RatioOfUntrusted(kept->permille));
    kept_ = true;
  }
  if (was_comparing || gate_.state() != kComparing) return;
  verdicts_->BeginComparison();
  words_->comparisons.fetch_add(1, std::memory_order_relaxed);
  kept_ = false;
}

void ReplayControl::Publish(ipc::ReplayState state) {
  words_->replay_state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  words_->replay_permille.store(ipc::PermilleOf(gate_.ratio()), std::memory_order_relaxed);
  words_->replay_kept.store(kept_ ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace shim

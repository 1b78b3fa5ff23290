#include "shim/kept_verdicts.h"

#include <algorithm>
#include <span>

namespace shim {
namespace {

constexpr uint32_t kLooks = 4;  // iterations of a new body

}  // namespace

void KeptVerdicts::Open(ipc::VerdictArea* area, ipc::ClientWords* words, BodyNamer* namer) {
  area_ = area;
  words_ = words;
  namer_ = namer;
}

std::optional<ipc::ReplayVerdict> KeptVerdicts::Find(bool is_new) {
  if (is_new) looks_ = kLooks;
  if (looks_ == 0) return std::nullopt;
  --looks_;
  if (area_ == nullptr || area_->known_count == 0) return std::nullopt;
  const uint64_t name = namer_->NameOfLast();
  const uint64_t count = std::min<uint64_t>(area_->known_count, ipc::limits::kReplayVerdictsMax);
  for (const ipc::ReplayVerdict& known : std::span(area_->known, count)) {
    if (known.body != name || !ipc::IsSound(known)) continue;
    looks_ = 0;
    Tell(known, ipc::ToldVerdict::kTaken);
    return known;
  }
  return std::nullopt;
}

void KeptVerdicts::OnCompared(uint32_t body) {
  if (area_ == nullptr) return;
  ++compared_.iterations;
  if (compared_.lead == 0 && (compared_.name == 0 || body != compared_.body)) {
    compared_.body = body;
    compared_.name = namer_->NameOfLast();
    compared_.alike = 0;
  }
  const bool alike = body == compared_.body;
  compared_.alike += alike ? 1 : 0;
  compared_.lead += alike ? 1 : -1;
}

// The detector of iterations may follow a part of the loop at first, so the body is not the first
// one that comes. Where two bodies take turns, the comparison says something of each.
void KeptVerdicts::Tell(double ratio, bool replays) {
  if (area_ == nullptr || 2 * compared_.alike < compared_.iterations) return;
  const ipc::ReplayVerdict verdict{
      .body = compared_.name, .permille = ipc::PermilleOf(ratio), .replays = replays ? 1u : 0u};
  if (ipc::IsSound(verdict)) Tell(verdict, ipc::ToldVerdict::kMeasured);
}

void KeptVerdicts::Tell(const ipc::ReplayVerdict& verdict, ipc::ToldVerdict::Kind kind) {
  const uint32_t told = words_->verdicts_told.load(std::memory_order_relaxed);
  area_->told[told % ipc::VerdictArea::kTold] = {.verdict = verdict, .kind = kind};
  words_->verdicts_told.store(told + 1, std::memory_order_release);
}

}  // namespace shim

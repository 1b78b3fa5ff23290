#include "daemon/control/replay_view.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ipc/client_words.h"
#include "ipc/replay_verdict.h"

namespace control {
namespace {

using ipc::ReplayState;

struct Replay {
  ReplayState state = ReplayState::kOff;
  uint64_t launches = 0;
  uint64_t replayed = 0;
  double time_ratio = 0;
  bool kept = false;  // an earlier start has measured that
  uint32_t comparisons = 0;
  uint64_t verified = 0;
  uint64_t mismatches = 0;
  std::string mismatch;
};

constexpr char kAtAnEarlierStart[] = ", as measured at an earlier start";

Replay ReplayOf(ipc::SessionPage* page) {
  const ipc::ClientWords& words = *ipc::ClientWordsOf(page);
  const ipc::ReplayCounts& counts = page->replay;
  Replay replay;
  const uint32_t state = words.replay_state.load(std::memory_order_relaxed);
  if (state <= static_cast<uint32_t>(ReplayState::kSlower))
    replay.state = static_cast<ReplayState>(state);
  replay.replayed = counts.replayed.load(std::memory_order_relaxed);
  replay.launches = std::max(replay.replayed, counts.launches.load(std::memory_order_relaxed));
  replay.time_ratio = ipc::RatioOfUntrusted(words.replay_permille.load(std::memory_order_relaxed));
  replay.kept = words.replay_kept.load(std::memory_order_relaxed) != 0;
  replay.comparisons = words.comparisons.load(std::memory_order_relaxed);
  replay.verified = counts.verified.load(std::memory_order_relaxed);
  replay.mismatches = counts.mismatches.load(std::memory_order_acquire);
  if (replay.mismatches != 0)
    replay.mismatch.assign(counts.mismatch, strnlen(counts.mismatch, sizeof counts.mismatch));
  return replay;
}

const char* StateName(ReplayState state) {
  switch (state) {
    case ReplayState::kOff:
      return "off";
    case ReplayState::kNoIterations:
      return "no iterations";
    case ReplayState::kLearning:
      return "learning";
    case ReplayState::kComparing:
      return "comparing";
    case ReplayState::kReplaying:
      return "replaying";
    case ReplayState::kNothingRepeats:
      return "nothing repeats";
    case ReplayState::kSlower:
      return "slower";
  }
  return "off";
}

std::string TextOf(const Replay& replay) {
  switch (replay.state) {
    case ReplayState::kOff:
      return "";
    case ReplayState::kNoIterations:
      return "nothing is replayed: no iterations were found so far";
    case ReplayState::kLearning:
      return "it is not replayed yet: its calls are being learned";
    case ReplayState::kComparing:
      return "replayed and forwarded iterations are being compared";
    case ReplayState::kNothingRepeats:
      return "it is not replayed: no three calls or more between two of its waits repeat";
    case ReplayState::kSlower:
      return absl::StrFormat("it is not replayed: that took %.2f times as long%s",
                             replay.time_ratio, replay.kept ? kAtAnEarlierStart : "");
    case ReplayState::kReplaying:
      break;
  }
  if (replay.launches == 0) return "";
  if (replay.replayed == 0)
    return "nothing was replayed so far: no three calls or more between two of its waits have "
           "repeated";
  std::string text = absl::StrFormat(
      "%.0f %% of its launches are replayed",
      100.0 * static_cast<double>(replay.replayed) / static_cast<double>(replay.launches));
  if (replay.time_ratio != 0)
    absl::StrAppendFormat(&text, ", in %.2f of the time%s", replay.time_ratio,
                          replay.kept ? kAtAnEarlierStart : "");
  return text;
}

}  // namespace

nlohmann::json ReplayJson(const Session& session) {
  if (session.page.get() == nullptr) return nullptr;
  const Replay replay = ReplayOf(session.page.get());
  return {{"state", StateName(replay.state)},  {"launches", replay.launches},
          {"replayed", replay.replayed},       {"time_ratio", replay.time_ratio},
          {"from_earlier_start", replay.kept}, {"comparisons", replay.comparisons},
          {"verified", replay.verified},       {"mismatches", replay.mismatches},
          {"mismatch", replay.mismatch}};
}

std::string ReplayText(const Session& session) {
  if (session.page.get() == nullptr) return "";
  const Replay replay = ReplayOf(session.page.get());
  std::string text = TextOf(replay);
  if (replay.mismatches != 0)
    absl::StrAppend(&text, text.empty() ? "" : "; ", "replay and single launches differed ",
                    replay.mismatches, replay.mismatches == 1 ? " time" : " times", ", last in ",
                    replay.mismatch);
  return text;
}

}  // namespace control

#include "cli/load/profile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/sim/statistics.h"

namespace load {
namespace {

constexpr int64_t kShortPrompt = 16;
constexpr int64_t kSteps = 24;
constexpr int64_t kPromptMax = 4096;
constexpr int64_t kAtOnceMax = 64;
constexpr int64_t kUsualContext = 2048;
constexpr double kNone = -1;

// The gaps between tokens, from when the last request has its first one to when the first request
// has its last.
void AddGaps(const std::vector<Answer>& answers, std::vector<double>* gaps) {
  int64_t begin = 0, end = INT64_MAX;
  for (const Answer& answer : answers) {
    if (!answer.ok() || answer.tokens_us.empty()) return;
    begin = std::max(begin, answer.tokens_us.front());
    end = std::min(end, answer.tokens_us.back());
  }
  for (const Answer& answer : answers) {
    for (size_t i = 1; i < answer.tokens_us.size(); ++i) {
      const int64_t from = answer.tokens_us[i - 1], to = answer.tokens_us[i];
      if (from >= begin && to <= end) gaps->push_back(static_cast<double>(to - from) / 1e3);
    }
  }
}

}  // namespace

int64_t ProfilePoint::prompt_tokens() const { return kind == kPrompt ? size : kShortPrompt; }
int64_t ProfilePoint::answer_tokens() const { return kind == kPrompt ? 1 : kSteps + size; }

std::vector<ProfilePoint> PointsOf(int64_t context, int64_t at_once) {
  const int64_t room = (context == 0 ? kUsualContext : context) - 1;  // for the token
  std::vector<ProfilePoint> points;
  for (int64_t tokens = kShortPrompt; tokens <= std::min(room, kPromptMax); tokens *= 2)
    points.push_back({ProfilePoint::kPrompt, tokens});
  for (int64_t requests = 1; requests <= std::min(at_once, kAtOnceMax); requests *= 2)
    points.push_back({ProfilePoint::kStep, requests});
  return points;
}

double MsOf(const ProfilePoint& point, const std::vector<std::vector<Answer>>& rounds) {
  std::vector<double> times;
  for (const std::vector<Answer>& answers : rounds) {
    if (point.kind == ProfilePoint::kStep) {
      AddGaps(answers, &times);
      continue;
    }
    for (const Answer& answer : answers) {
      if (!answer.ok()) return kNone;
      times.push_back(static_cast<double>(answer.FirstUs() - answer.sent_us) / 1e3);
    }
  }
  return times.empty() ? kNone : sim::Percentile(&times, 50);
}

std::string TableText(const std::string& model, const std::vector<ProfileRow>& rows) {
  std::string text = absl::StrCat(
      "# ", model, " as a client sees it: laneway sim serving --costs reads this\nkind,size,ms\n");
  for (const ProfileRow& row : rows) {
    absl::StrAppendFormat(&text, "%s,%d,%.3f\n",
                          row.point.kind == ProfilePoint::kPrompt ? "prompt" : "step",
                          row.point.size, row.ms);
  }
  return text;
}

}  // namespace load

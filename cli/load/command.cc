#include "cli/load/command.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/load/arrivals.h"
#include "cli/load/client.h"
#include "cli/load/profile.h"
#include "cli/load/prompts.h"
#include "cli/load/report.h"
#include "cli/load/senders.h"
#include "cli/load/summary.h"
#include "cli/request.h"
#include "cli/sim/serving/costs.h"

namespace load {
namespace {

using cli::Say;
using sim::serving::TracedRequest;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kExitInterrupted = 130;

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int) { stop_asked = true; }

// A second Ctrl-C ends the process at once.
void StopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// By arrival. Those of a trace come when it says.
absl::StatusOr<std::vector<TracedRequest>> RequestsOf(const Request& request) {
  if (!request.trace.empty()) {
    const absl::StatusOr<std::string> text = sim::serving::ReadText(request.trace);
    if (!text.ok()) return text.status();
    return sim::serving::ParseRequests(*text, request.trace);
  }
  sim::serving::PoissonPlan lengths = request.plan;
  lengths.per_s = 1;  // times come from ArrivalsUs()
  std::vector<TracedRequest> requests = GenerateRequests(lengths);
  sim::Random random(request.plan.seed);
  const double per_s =
      request.plan.per_s > 0 ? request.plan.per_s : std::numeric_limits<double>::infinity();
  const std::vector<int64_t> arrivals =
      ArrivalsUs(requests.size(), per_s, request.burstiness, &random);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].arrival_us = arrivals[i];
  return requests;
}

absl::StatusOr<Server> ServerOf(const Request& request) {
  Server server{request.url, ""};
  if (const absl::Status legal = CheckUrl(request.url); !legal.ok()) return legal;
  if (request.api_key_file.empty()) return server;
  const absl::StatusOr<std::string> text = sim::serving::ReadText(request.api_key_file);
  if (!text.ok()) return text.status();
  server.key = std::string(absl::StripAsciiWhitespace(text->substr(0, text->find('\n'))));
  return server;
}

// A line that moves on a terminal, and one in ten seconds elsewhere.
class ProgressLine {
 public:
  void Show(const Progress& progress) {
    const bool last = progress.ended == progress.all;
    if (!terminal_ && !last && ++calls_ % 10 != 0) return;
    std::fprintf(stderr, "%s%zu of %zu requests sent, %zu ended, %zu of them failed%s",
                 terminal_ ? "\r\033[K" : "", progress.sent, progress.all, progress.ended,
                 progress.failed, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void Clear() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  int64_t calls_ = 0;
};

SendingPlan PlanOf(const Request& request, const Server& server,
                   const std::vector<TracedRequest>& traced, const BodyPlan& bodies,
                   sim::Random* random) {
  SendingPlan plan{server,
                   request.chat ? "chat/completions" : "completions",
                   {},
                   static_cast<size_t>(request.at_once)};
  for (const TracedRequest& one : traced) {
    plan.requests.push_back({one.arrival_us, BodyOf(one, bodies, random)});
  }
  return plan;
}

std::vector<Answer> Send(const SendingPlan& plan) {
  ProgressLine line;
  StopOnSignals();
  std::vector<Answer> answers =
      SendAll(plan, stop_asked, [&line](const Progress& progress) { line.Show(progress); });
  line.Clear();
  return answers;
}

// The first failure of these answers.
std::string FailureOf(const std::vector<std::vector<Answer>>& rounds) {
  for (const std::vector<Answer>& answers : rounds) {
    for (const Answer& answer : answers) {
      if (!answer.ok()) return answer.failure;
    }
  }
  return "answers came all at once, so the time between their tokens is not seen";
}

int Profile(const Request& request, const Server& server, const ListedModel& model,
            const BodyPlan& bodies) {
  const std::vector<ProfilePoint> points = PointsOf(model.context, request.at_once);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  sim::Random random(request.plan.seed);
  std::vector<ProfileRow> rows;
  StopOnSignals();
  for (const ProfilePoint& point : points) {
    std::fprintf(stderr, "%smeasuring %zu of %zu%s", terminal ? "\r\033[K" : "", rows.size() + 1,
                 points.size(), terminal ? "" : "\n");
    const std::vector<TracedRequest> traced(
        static_cast<size_t>(point.requests()),
        TracedRequest{0, point.prompt_tokens(), point.answer_tokens(), {}});
    std::vector<std::vector<Answer>> rounds;
    for (int round = 0; round < (point.kind == ProfilePoint::kPrompt ? kPromptRounds : 1); ++round)
      rounds.push_back(SendAll(PlanOf(request, server, traced, bodies, &random), stop_asked,
                               [](const Progress&) {}));
    if (terminal) std::fputs("\r\033[K", stderr);
    if (stop_asked) return kExitInterrupted;
    rows.push_back({point, MsOf(point, rounds)});
    if (rows.back().ms < 0) return Say(kFailed, FailureOf(rounds));
  }
  std::fputs(TableText(model.id, rows).c_str(), stdout);
  return 0;
}

}  // namespace

int Load(const Request& request) {
  if (request.plan.prompt_min > request.plan.prompt_max ||
      request.plan.answer_min > request.plan.answer_max) {
    return Say(kWrongUsage, "a shortest length is above the longest: exchange --*-min and --*-max");
  }
  const absl::StatusOr<Goals> goals = serve::metrics::ParseLatencyGoals(request.goals);
  if (!goals.ok()) return Say(kWrongUsage, std::string(goals.status().message()));
  const absl::StatusOr<Server> server = ServerOf(request);
  if (!server.ok()) return Say(kWrongUsage, std::string(server.status().message()));
  const absl::StatusOr<std::vector<TracedRequest>> requests = RequestsOf(request);
  if (!requests.ok()) return Say(kFailed, std::string(requests.status().message()));
  BodyPlan bodies{request.model, request.chat, !request.stop_at_end, {}};
  Client client(*server);
  ListedModel model{request.model, 0};
  if (request.model.empty() || request.profile) {
    const absl::StatusOr<ListedModel> listed = client.FindModel(request.model);
    if (!listed.ok()) return Say(kFailed, std::string(listed.status().message()));
    model = *listed;
  }
  bodies.model = model.id;
  bodies.ids = client.Tokenize(bodies.model, SomeWords());
  if (request.profile) return Profile(request, *server, model, bodies);
  sim::Random random(request.plan.seed ^ 0x9e3779b97f4a7c15);  // not that of lengths
  const std::vector<Answer> answers = Send(PlanOf(request, *server, *requests, bodies, &random));
  const Summary summary = SummaryOf(answers, *goals);
  std::fputs((request.json ? SummaryJson(summary, *goals) : SummaryText(summary, *goals)).c_str(),
             stdout);
  if (stop_asked) return kExitInterrupted;
  return summary.failed > 0 ? kFailed : 0;
}

}  // namespace load

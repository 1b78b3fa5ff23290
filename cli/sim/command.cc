#include "cli/sim/command.h"

#include <cstdio>
#include <fstream>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/request.h"
#include "cli/sim/html.h"
#include "cli/sim/jobs_csv.h"
#include "cli/sim/output.h"
#include "cli/sim/statistics.h"
#include "scheduler/policy.h"

namespace sim {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

using cli::Say;

Knowledge KnowledgeOf(const std::string& name) {
  if (name == "declared") return Knowledge::kDeclared;
  if (name == "learned") return Knowledge::kLearned;
  return name == "none" ? Knowledge::kNothing : Knowledge::kExact;
}

std::vector<std::string> PoliciesOf(const std::string& list) {
  return absl::StrSplit(list == "all" ? scheduler::PolicyNames() : list, absl::ByAnyChar(", "),
                        absl::SkipEmpty());
}

int Generate(const Request& request) {
  if (request.generate == "salus") {
    const FittedTrace fitted = FitSalusTrace(request.seed);
    const std::string comment = absl::StrFormat(
        "100 jobs like Salus's trace: FIFO's row and SRTF's mean of Table 2.1 within 3 %%\n"
        "laneway sim --generate salus --seed %d: sigma %.2f, arrivals within %.0f min, the %dth "
        "trace tried\n",
        request.seed, fitted.sigma, fitted.window_min, fitted.tries);
    std::fputs(JobsText(fitted.jobs, comment).c_str(), stdout);
    return 0;
  }
  LognormalPlan plan = request.plan;
  plan.seed = request.seed;
  const std::string comment = absl::StrFormat(
      "%d lognormal jobs, mean %g s, sigma %g: laneway sim --generate lognormal --seed %d\n",
      plan.jobs, plan.mean_s, plan.sigma, plan.seed);
  std::fputs(JobsText(GenerateLognormal(plan), comment).c_str(), stdout);
  return 0;
}

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return absl::UnknownError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::Status WriteFiles(const Request& request, const std::vector<Outcome>& outcomes) {
  if (!request.timeline_file.empty()) {
    const absl::Status written = Write(request.timeline_file, PerfettoJson(outcomes));
    if (!written.ok()) return written;
  }
  if (request.html_file.empty()) return absl::OkStatus();
  return Write(request.html_file,
               OutcomesHtml(absl::StrCat("laneway sim ", request.jobs_file), outcomes));
}

void Print(const Request& request, const std::vector<Outcome>& outcomes) {
  std::vector<Summary> summaries;
  for (const Outcome& outcome : outcomes) summaries.push_back(Summarise(outcome));
  if (request.json) {
    std::fputs(SummaryJson(summaries, outcomes).c_str(), stdout);
    return;
  }
  std::fputs(SummaryText(summaries).c_str(), stdout);
  for (const Outcome& outcome : outcomes) {
    if (!request.table) break;
    std::printf("\n%s\n%s", outcome.policy.c_str(), JobsTableText(outcome).c_str());
  }
}

}  // namespace

void AddFlags(CLI::App* app, Request* request) {
  CLI::App* const serving = app->add_subcommand(
      "serving", "Run the batchers of language models in virtual time, on requests of a trace");
  serving->callback([request] { request->serving = true; });
  serving::AddFlags(serving, &request->serving_request);
  app->add_option("JOBS", request->jobs_file, "the jobs, as CSV; - reads standard input");
  app->add_option("--policy", request->policies, "one or several, separated by commas, or all")
      ->type_name("NAMES");
  app->add_option("--knowledge", request->knowledge,
                  "what the scheduler is told of durations and memory beforehand")
      ->check(CLI::IsMember({"exact", "declared", "learned", "none"}))
      ->type_name("WHAT");
  app->add_flag("--list-policies", request->list, "print the policies' names and end");
  app->add_flag("--json", request->json, "print JSON, for programs");
  app->add_flag("--jobs-table", request->table, "print a line per job, too");
  app->add_option("--timeline", request->timeline_file, "write a trace for ui.perfetto.dev")
      ->type_name("FILE");
  app->add_option("--html", request->html_file, "write a report that opens in a browser")
      ->type_name("FILE");
  app->add_option("--seed", request->seed, "of requests' times and of what is generated")
      ->type_name("N");
  app->add_option("--memory-mib", request->device.memory_mib, "device memory for jobs")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->type_name("MIB");
  app->add_option("--switch-us", request->device.switch_us, "what a switch costs")
      ->check(CLI::Range(int64_t{0}, int64_t{10'000'000}))
      ->type_name("US");
  app->add_option("--swap-gib-per-s", request->device.swap_gib_per_s,
                  "bandwidth between device and host")
      ->check(CLI::Range(0.01, 10'000.0))
      ->type_name("GIB");
  app->add_option("--swap-mib", request->bounds.swap_mib, "host memory for what is swapped out")
      ->type_name("MIB");
  app->add_option("--slice-ms", request->bounds.slice_ms, "the scheduler's time slice")
      ->type_name("MS");
  app->add_option("--starvation-s", request->bounds.starvation_s,
                  "nobody who could run waits longer")
      ->type_name("SECONDS");
  app->add_option("--lanes", request->bounds.lanes_max, "at most so many lanes")->type_name("N");
  app->add_option("--generate", request->generate, "print jobs instead of simulating any")
      ->check(CLI::IsMember({"lognormal", "salus"}))
      ->type_name("KIND");
  app->add_option("--jobs", request->plan.jobs, "of --generate lognormal: how many")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  app->add_option("--mean-s", request->plan.mean_s, "of --generate lognormal: mean duration")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("SECONDS");
  app->add_option("--sigma", request->plan.sigma, "of --generate lognormal: of the logarithm")
      ->check(CLI::Range(0.0, 5.0))
      ->type_name("SIGMA");
  app->add_option("--window-s", request->plan.window_s,
                  "of --generate lognormal: they arrive within (half of the work's time)")
      ->type_name("SECONDS");
  app->add_option("--commands", request->plan.commands,
                  "of --generate lognormal: they repeat so many commands (0: each its own)")
      ->type_name("N");
}

int Simulate(const Request& request) {
  if (request.serving) return serving::Simulate(request.serving_request);
  if (request.list) {
    for (const std::string& policy : PoliciesOf("all")) std::printf("%s\n", policy.c_str());
    return 0;
  }
  if (!request.generate.empty()) return Generate(request);
  if (request.jobs_file.empty()) {
    return Say(kWrongUsage, "simulate what? laneway sim JOBS.csv --policy all");
  }
  absl::StatusOr<std::vector<Job>> jobs = ReadJobs(request.jobs_file);
  if (!jobs.ok()) return Say(kFailed, std::string(jobs.status().message()));
  Experiment experiment;
  experiment.jobs = *std::move(jobs);
  experiment.device = request.device;
  experiment.bounds = request.bounds;
  experiment.knowledge = KnowledgeOf(request.knowledge);
  experiment.seed = request.seed;
  experiment.record = !request.timeline_file.empty() || !request.html_file.empty();
  std::vector<Outcome> outcomes;
  for (const std::string& policy : PoliciesOf(request.policies)) {
    experiment.policy = policy;
    absl::StatusOr<Outcome> outcome = Simulate(experiment);
    if (!outcome.ok()) {
      return Say(absl::IsInvalidArgument(outcome.status()) ? kWrongUsage : kFailed,
                 std::string(outcome.status().message()));
    }
    outcomes.push_back(*std::move(outcome));
  }
  if (outcomes.empty()) return Say(kWrongUsage, "--policy names none");
  Print(request, outcomes);
  const absl::Status written = WriteFiles(request, outcomes);
  return written.ok() ? 0 : Say(kFailed, std::string(written.message()));
}

}  // namespace sim

#include "cli/sim/serving/command.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/request.h"
#include "cli/sim/serving/output.h"
#include "scheduler/batching/iteration/modes.h"

namespace sim::serving {
namespace {

using cli::Say;
using scheduler::batching::iteration::ModeNames;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

std::vector<std::string> ModesOf(const std::string& list) {
  if (list == "all") return ModeNames();
  return absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty());
}

absl::StatusOr<std::vector<TracedRequest>> RequestsOf(const Request& request) {
  if (request.trace == "generated") return GenerateRequests(request.plan);
  const absl::StatusOr<std::string> text = ReadText(request.trace);
  if (!text.ok()) return text.status();
  return ParseRequests(*text, request.trace == "-" ? "standard input" : request.trace);
}

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return static_cast<bool>(file);
}

void AddGeneratorFlags(CLI::App* app, PoissonPlan* plan) {
  app->add_option("--requests", plan->requests, "of generated: how many")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  app->add_option("--rate", plan->per_s, "of generated: requests per second, on average")
      ->check(CLI::Range(1e-6, 1e6))
      ->type_name("PER_S");
  AddLengthFlags(app, "of generated: ", plan);
  app->add_option("--seed", plan->seed, "of generated")->type_name("N");
}

}  // namespace

void AddLengthFlags(CLI::App* app, const std::string& of_what, PoissonPlan* plan) {
  struct Length {
    const char* flag;
    const char* help;
    int64_t* tokens;
  };
  for (const Length& length : {Length{"--prompt-min", "the shortest prompt", &plan->prompt_min},
                               Length{"--prompt-max", "the longest prompt", &plan->prompt_max},
                               Length{"--answer-min", "the shortest answer", &plan->answer_min},
                               Length{"--answer-max", "the longest answer", &plan->answer_max}}) {
    app->add_option(length.flag, *length.tokens, of_what + length.help)
        ->check(CLI::Range(int64_t{1}, kTokensMax / 2))
        ->type_name("TOKENS");
  }
}

void AddFlags(CLI::App* app, Request* request) {
  app->add_option("TRACE", request->trace,
                  "an Azure LLM inference trace (CSV) or a Mooncake trace (JSON lines); - reads "
                  "standard input; generated makes one")
      ->required();
  app->add_option("--costs", request->costs_file, "what steps of the engine take, as CSV")
      ->required()
      ->type_name("FILE");
  app->add_option("--batching", request->modes,
                  absl::StrCat("one or several of ", absl::StrJoin(ModeNames(), ", "), ", or all"))
      ->type_name("NAMES");
  app->add_flag("--json", request->json, "print JSON, for programs");
  app->add_option("--html", request->html_file, "write a report that opens in a browser")
      ->type_name("FILE");
  app->add_option("--answers-max", request->options.answers_max,
                  "answers that run at once; under orca: of one step")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  app->add_option("--tokens-max", request->options.tokens_max,
                  "tokens of a step under budget, at least one an answer")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  app->add_option("--stages", request->engine.stages, "of the engine, in a pipeline")
      ->check(CLI::Range(int64_t{1}, int64_t{64}))
      ->type_name("N");
  app->add_option("--kv-tokens", request->engine.kv_tokens,
                  "tokens that the engine has memory for, over all requests")
      ->check(CLI::Range(int64_t{16}, int64_t{1} << 30))
      ->type_name("TOKENS");
  AddGeneratorFlags(app, &request->plan);
}

int Simulate(const Request& request) {
  if (request.plan.prompt_min > request.plan.prompt_max ||
      request.plan.answer_min > request.plan.answer_max) {
    return Say(kWrongUsage, "a shortest length is above the longest: exchange --*-min and --*-max");
  }
  const std::vector<std::string> modes = ModesOf(request.modes);
  for (const std::string& mode : modes) {
    if (std::find(ModeNames().begin(), ModeNames().end(), mode) != ModeNames().end()) continue;
    return Say(kWrongUsage, absl::StrCat("there is no batching '", mode, "'; there are ",
                                         absl::StrJoin(ModeNames(), ", ")));
  }
  if (modes.empty()) return Say(kWrongUsage, "--batching names none");
  const absl::StatusOr<Costs> costs = Costs::Read(request.costs_file);
  if (!costs.ok()) return Say(kFailed, std::string(costs.status().message()));
  const absl::StatusOr<std::vector<TracedRequest>> requests = RequestsOf(request);
  if (!requests.ok()) return Say(kFailed, std::string(requests.status().message()));
  std::vector<Served> runs;
  for (const std::string& mode : modes) {
    runs.push_back(Serve(mode, request.options, request.engine, *costs, *requests));
  }
  std::fputs((request.json ? ServedJson(runs) : ServedText(runs)).c_str(), stdout);
  if (request.html_file.empty() ||
      Write(request.html_file,
            ServedHtml(absl::StrCat("laneway sim serving ", request.trace), runs))) {
    return 0;
  }
  return Say(kFailed, absl::StrCat("cannot write ", request.html_file));
}

}  // namespace sim::serving

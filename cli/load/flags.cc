// The flags of `laneway load`.
#include "cli/load/command.h"
#include "cli/sim/serving/command.h"

namespace load {

void AddFlags(CLI::App* app, Request* request) {
  app->add_option("URL", request->url, "a server of OpenAI's API: http://127.0.0.1:8000")
      ->required();
  app->add_option("--model", request->model, "to ask; the first that the server names without it")
      ->type_name("NAME");
  app->add_option("--api-key-file", request->api_key_file, "its first line is the key")
      ->type_name("FILE");
  app->add_option("--requests", request->plan.requests, "how many")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  CLI::Option* const rate =
      app->add_option("--rate", request->plan.per_s,
                      "requests per second, on average; without it all are sent at once")
          ->check(CLI::Range(1e-3, 1e6))
          ->type_name("PER_S");
  app->add_option("--burstiness", request->burstiness,
                  "shape of the gaps' gamma distribution: 1 is Poisson, less comes in bursts")
      ->check(CLI::Range(1e-2, 1e6))
      ->needs(rate)
      ->type_name("SHAPE");
  CLI::Option* const trace =
      app->add_option("--trace", request->trace,
                      "send what this trace says, when it says: Azure's (CSV) or Mooncake's (JSON "
                      "lines)")
          ->excludes(rate)
          ->type_name("FILE");
  app->add_option("--concurrency", request->at_once, "requests that are asked at once, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->type_name("N");
  sim::serving::AddLengthFlags(app, "", &request->plan);
  app->add_option("--seed", request->plan.seed, "of times, lengths and prompts")->type_name("N");
  CLI::Option* const goals =
      app->add_option("--goodput", request->goals,
                      "count requests that meet these goals in ms: ttft:500,tpot:100,e2el:5000")
          ->type_name("GOALS");
  app->add_flag("--chat", request->chat, "ask for chat completions");
  app->add_flag("--stop-at-end", request->stop_at_end,
                "let answers end where the model ends them, and not ask to go on");
  CLI::Option* const json = app->add_flag("--json", request->json, "print JSON, for programs");
  CLI::Option* const profile =
      app->add_flag("--profile", request->profile,
                    "print how long steps take by their size, for laneway sim serving --costs; the "
                    "server must have nothing else to do");
  for (CLI::Option* const other : {rate, trace, goals, json}) profile->excludes(other);
}

}  // namespace load

// What planning a step costs: 256 answers run and 10,000 requests wait.
//
// The figure of a mode is the 99th percentile of OnEvent over StepDone events, each of which ends a
// step of the 256 and plans the next. A sample is one of several runs.
// usage: bench_batching [--json] [--quick]
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/batching/iteration/modes.h"
#include "tests/shim/bench/report.h"

namespace scheduler::batching::iteration {
namespace {

constexpr int32_t kRunning = 256;
constexpr int32_t kWaiting = 10'000;
constexpr int32_t kPromptTokens = 64;

struct Loop {
  explicit Loop(const std::string& mode) {
    Options options;
    options.answers_max = kRunning;
    options.tokens_max = 2 * kRunning;
    options.queue_requests_max = kWaiting + kRunning;
    options.queue_tokens_max = int64_t{1} << 40;
    batcher = MakeBatcher(mode, options);
    Tell(EngineReady{kRunning * 16});
    for (int32_t i = 0; i < kWaiting + kRunning; ++i) Arrive();
  }

  void Arrive() {
    Arrived about;
    about.request = ++last;
    about.tokens.assign(kPromptTokens, static_cast<Token>(last));
    about.new_max = 32 + static_cast<int32_t>(last % 64);
    Tell(about);
  }
  void Tell(const Event& event) {
    actions.clear();
    batcher->OnEvent(event, ++now_us, &actions);
    for (Action& action : actions) {
      if (Step* const planned = std::get_if<Step>(&action)) step = std::move(*planned);
    }
  }
  void FinishStep() {
    StepDone done = {step.number, {}};
    for (const Row& row : step.rows) {
      done.sampled.resize(done.sampled.size() + static_cast<size_t>(row.samples));
    }
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    Tell(done);
    const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now();
    times_us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    while (batcher->state().requests.waiting().size() < kWaiting) Arrive();
  }

  std::unique_ptr<IterationBatcher> batcher;
  std::vector<Action> actions;
  Step step;
  RequestId last = 0;
  int64_t now_us = 0;
  std::vector<double> times_us;
};

double Percentile(std::vector<double> times, double share) {
  const size_t at = static_cast<size_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(at), times.end());
  return times[at];
}

}  // namespace
}  // namespace scheduler::batching::iteration

int main(int argc, char** argv) {
  using scheduler::batching::iteration::Loop;
  bool as_json = false;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    as_json |= std::strcmp(argv[i], "--json") == 0;
    quick |= std::strcmp(argv[i], "--quick") == 0;
  }
  bench::Report report;
  for (const char* const mode : {"budget", "orca"}) {
    bench::Figure figure = {std::string(mode) + ": step decided p99 at 256 running, 10000 waiting",
                            "us"};
    figure.bar = 50;
    for (int round = 0; round < (quick ? 3 : 7); ++round) {
      Loop loop(mode);
      for (int step = 0; step < (quick ? 500 : 2'000); ++step) loop.FinishStep();
      figure.samples.push_back(scheduler::batching::iteration::Percentile(loop.times_us, 0.99));
    }
    report.Add(figure);
  }
  report.Print(as_json);
  return report.exit_code();
}

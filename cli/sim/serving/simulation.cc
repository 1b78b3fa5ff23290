#include "cli/sim/serving/simulation.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "scheduler/batching/iteration/modes.h"

namespace sim::serving {
namespace {

using scheduler::batching::Rejected;
using scheduler::batching::RequestId;
using scheduler::batching::SetTimer;
using namespace scheduler::batching::iteration;

class Run {
 public:
  Run(const std::string& mode, const Options& options, const Engine& engine, const Costs& costs,
      const std::vector<TracedRequest>& requests)
      : engine_(engine),
        costs_(costs),
        requests_(requests),
        batcher_(MakeBatcher(mode, options)),
        stage_free_us_(static_cast<size_t>(engine.stages), 0),
        first_token_us_(requests.size(), -1) {
    served_.mode = mode;
  }

  Served Do() {
    const int64_t blocks = std::max<int64_t>(1, engine_.kv_tokens / kBlockTokens);
    Tell(EngineReady{static_cast<int32_t>(blocks)});
    size_t next = 0;
    while (next < requests_.size() || !in_flight_.empty()) {
      const bool arrives =
          in_flight_.empty() ||
          (next < requests_.size() && requests_[next].arrival_us <= in_flight_.front().done_us);
      if (arrives) {
        now_us_ = std::max(now_us_, requests_[next].arrival_us);
        Arrive(next++);
      } else {
        FinishStep();
      }
    }
    served_.seconds = std::max(1e-6, static_cast<double>(now_us_) / 1e6);
    served_.counters = batcher_->state().counters;
    return std::move(served_);
  }

 private:
  struct InFlight {
    int64_t done_us = 0;
    Step step;
  };

  // Prompts share what the trace says that they share, and nothing else.
  void Arrive(size_t number) {
    const TracedRequest& request = requests_[number];
    Arrived about;
    about.request = number + 1;
    for (int64_t i = 0; i < request.prompt_tokens; ++i) {
      const size_t piece = static_cast<size_t>(i / kHashTokens);
      const uint64_t owner = piece < request.hash_ids.size()
                                 ? static_cast<uint64_t>(request.hash_ids[piece])
                                 : ~static_cast<uint64_t>(number);
      about.tokens.push_back(
          static_cast<Token>(owner * 31 + static_cast<uint64_t>(i % kHashTokens)));
    }
    about.new_max = static_cast<int32_t>(request.answer_tokens);
    Tell(about);
  }

  void FinishStep() {
    const InFlight done = std::move(in_flight_.front());
    in_flight_.pop_front();
    now_us_ = done.done_us;
    StepDone event = {done.step.number, {}};
    for (const Row& row : done.step.rows) {
      event.sampled.resize(event.sampled.size() + static_cast<size_t>(row.samples));
      int64_t* const first_us = &first_token_us_[row.request - 1];
      if (row.samples > 0 && *first_us < 0) *first_us = now_us_;
    }
    Tell(event);
  }

  void Tell(const Event& event) {
    std::vector<Action> actions;
    batcher_->OnEvent(event, now_us_, &actions);
    for (Action& action : actions) {
      std::visit([this](auto& each) { Perform(std::move(each)); }, action);
    }
  }

  void Perform(Step step) {
    const double stage_us = costs_.StepMs(step) * 1e3 / static_cast<double>(engine_.stages);
    int64_t at_us = now_us_;
    for (int64_t& free_us : stage_free_us_) {
      at_us = std::max(at_us, free_us) + std::max<int64_t>(1, std::llround(stage_us));
      free_us = at_us;
    }
    in_flight_.push_back({at_us, std::move(step)});
  }
  void Perform(Finished finished) {
    const TracedRequest& request = requests_[finished.request - 1];
    const double arrived_us = static_cast<double>(request.arrival_us);
    const double first_us = static_cast<double>(first_token_us_[finished.request - 1]);
    served_.token_ms.push_back((static_cast<double>(now_us_) - arrived_us) / 1e3 /
                               static_cast<double>(request.answer_tokens));
    served_.first_ms.push_back((first_us - arrived_us) / 1e3);
    if (request.answer_tokens > 1) {
      served_.next_ms.push_back((static_cast<double>(now_us_) - first_us) / 1e3 /
                                static_cast<double>(request.answer_tokens - 1));
    }
  }
  void Perform(Rejected) { ++served_.refused; }
  void Perform(SetTimer) {}  // there are no deadlines
  void Perform(Preempted) {}

  const Engine engine_;
  const Costs& costs_;
  const std::vector<TracedRequest>& requests_;
  std::unique_ptr<IterationBatcher> batcher_;
  std::vector<int64_t> stage_free_us_;
  std::vector<int64_t> first_token_us_;
  std::deque<InFlight> in_flight_;
  int64_t now_us_ = 0;
  Served served_;
};

}  // namespace

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const size_t at = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

Served Serve(const std::string& mode, Options options, const Engine& engine, const Costs& costs,
             const std::vector<TracedRequest>& requests) {
  assert(!requests.empty());
  for (const TracedRequest& request : requests) {
    const int64_t all = request.prompt_tokens + request.answer_tokens;
    options.context_max = std::max(options.context_max, static_cast<int32_t>(all));
  }
  // Refusals would make a slow mode look fast: only what can never fit is refused.
  options.queue_requests_max = std::numeric_limits<int32_t>::max();
  options.queue_tokens_max = std::numeric_limits<int64_t>::max();
  options.steps_in_flight_max = static_cast<int32_t>(engine.stages);
  options.tokens_max = std::max(options.tokens_max, options.answers_max);
  return Run(mode, options, engine, costs, requests).Do();
}

}  // namespace sim::serving

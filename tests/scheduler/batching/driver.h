// A batcher that a test tells events by hand. Thread safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/batching/iteration/modes.h"

namespace scheduler::batching::iteration {

class Driver {
 public:
  Driver(const std::string& mode, const Options& options) : batcher_(MakeBatcher(mode, options)) {}

  void Tell(const Event& event) {
    actions_.clear();
    batcher_->OnEvent(event, now_us, &actions_);
    Check(batcher_->state());
  }
  void Arrive(RequestId request, std::vector<Token> tokens, int32_t new_max, int32_t copies = 1) {
    Arrived about;
    about.request = request;
    about.tokens = std::move(tokens);
    about.new_max = new_max;
    about.copies = copies;
    Tell(about);
  }
  // The engine is done with the step, and has sampled `token` everywhere.
  void Finish(const Step& step, Token token = 7) {
    StepDone done = {step.number, {}};
    for (const Row& row : step.rows) {
      done.sampled.resize(done.sampled.size() + static_cast<size_t>(row.samples), {token, false});
    }
    Tell(done);
  }
  // Of the last event.
  template <typename Kind>
  std::vector<Kind> Of() const {
    std::vector<Kind> found;
    for (const Action& action : actions_) {
      if (const Kind* const each = std::get_if<Kind>(&action)) found.push_back(*each);
    }
    return found;
  }
  // The one step of the last event; one without rows: there was none.
  Step Planned() const {
    const std::vector<Step> steps = Of<Step>();
    return steps.empty() ? Step() : steps[0];
  }
  const State& state() const { return batcher_->state(); }
  const IterationBatcher& batcher() const { return *batcher_; }

  int64_t now_us = 0;

 private:
  std::unique_ptr<IterationBatcher> batcher_;
  std::vector<Action> actions_;
};

}  // namespace scheduler::batching::iteration

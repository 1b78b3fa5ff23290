// A server, its clients and an engine around one batcher, driven by random events from a seed.
//
// The engine writes a hash for each token that a row computes: of all tokens up to this one, into
// the slot that the table names. Before a row, the slots of all earlier tokens must have their
// hashes. So a block that is shared wrongly, used again too early or never computed is noticed.
// After each event the world checks that each answer is told once, without a row after that. It
// checks limits, and that an engine never idles while answers are owed.
// Throws std::logic_error with what is wrong. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/batching/iteration/modes.h"

namespace scheduler::batching::iteration {

class World {
 public:
  struct Plan {
    std::string mode = "orca";
    Options options;
    int32_t blocks_min = 4;  // of an engine
    int32_t blocks_max = 24;
    int32_t prompt_max = 60;
    int32_t new_max = 20;
    bool losses = true;  // of engines
    bool cancels = true;
    bool copies = true;
  };
  struct Answer {
    std::vector<Token> tokens;
    int32_t tokens_max = 0;
    int32_t iterations = 0;  // steps that had a row of it
    int64_t arrived_us = 0;
    int64_t begun_us = -1;  // first row
    uint32_t priority = 0;
    uint64_t salt = 0;
    int32_t computed = 0;  // where the next row begins; 0: wherever it likes
    bool needs_drawn = false;
    std::vector<BlockId> table;
  };
  using AnswerId = std::pair<RequestId, int32_t>;

  World(const Plan& plan, uint64_t seed);

  void Step();        // one random event
  void ComeToRest();  // no more arrivals; until all answers are told

  // What happens, by itself.
  RequestId Arrive(Arrived about);
  void Arrive() { Arrive(RandomRequest()); }
  void Cancel();
  bool FinishStep();  // the first in flight; false: none is
  void LoseEngine();
  void ReadyEngine();
  void PassTime(int64_t us) { now_us_ += us; }

  const IterationBatcher& batcher() const { return *batcher_; }
  const std::map<AnswerId, Answer>& answers() const { return answers_; }  // that are owed
  const std::vector<std::vector<AnswerId>>& steps() const { return steps_; }
  const std::vector<Finished>& finished() const { return finished_; }
  int64_t now_us() const { return now_us_; }
  uint64_t events() const { return events_; }
  uint64_t digest() const { return digest_; }  // of all actions

 private:
  Arrived RandomRequest();
  int Random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  void Tell(const Event& event);
  void Apply(const iteration::Step& step);
  void Compute(const Row& row);
  // The answer with the token that the step before draws for it.
  Answer Foreseen(const Row& row, const Answer& answer) const;
  // No row of another answer in flight writes there.
  void RequireUnwritten(const Row& row, BlockId block) const;
  void Apply(const Finished& finished);
  void Apply(const Rejected& rejected);
  void Apply(const SetTimer& timer) { timer_us_ = timer.at_us; }
  void Apply(const Preempted& preempted);
  void CheckStep(const iteration::Step& step) const;
  void CheckAhead(const Row& row) const;
  void Require(bool holds, const char* sentence) const;
  void Note(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3; }

  Plan plan_;
  std::mt19937_64 random_;
  std::unique_ptr<IterationBatcher> batcher_;
  std::map<AnswerId, Answer> answers_;
  struct Written {
    AnswerId answer;
    std::vector<BlockId> blocks;
  };
  std::deque<iteration::Step> in_flight_;
  std::deque<std::vector<Written>> written_;  // by each of them, and by the step that begins
  std::vector<uint64_t> slots_;               // of the engine
  std::vector<std::vector<AnswerId>> steps_;
  std::vector<Finished> finished_;
  bool engine_ready_ = false;
  RequestId last_request_ = 0;
  int64_t now_us_ = 0;
  int64_t timer_us_ = kNever;
  uint64_t events_ = 0;
  uint64_t digest_ = 0;
};

// The token that a model of ours samples at this place of an answer.
Token TokenAt(RequestId request, int32_t copy, int32_t position);

}  // namespace scheduler::batching::iteration

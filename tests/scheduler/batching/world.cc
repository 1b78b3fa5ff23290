#include "tests/scheduler/batching/world.h"

#include <algorithm>
#include <stdexcept>
#include <variant>

namespace scheduler::batching::iteration {
namespace {

uint64_t Chained(uint64_t before, uint64_t value) {
  return (before ^ (value + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd + (before >> 29);
}

// Of the tokens up to and including `last`.
uint64_t HashUpTo(const World::Answer& answer, int32_t last) {
  uint64_t hash = Chained(1, answer.salt);
  for (int32_t i = 0; i <= last; ++i) {
    hash = Chained(hash, static_cast<uint64_t>(answer.tokens[static_cast<size_t>(i)]));
  }
  return hash;
}

}  // namespace

Token TokenAt(RequestId request, int32_t copy, int32_t position) {
  const uint64_t hash =
      Chained(Chained(request, static_cast<uint64_t>(copy)), static_cast<uint64_t>(position));
  return static_cast<Token>(hash >> 40);
}

World::World(const Plan& plan, uint64_t seed)
    : plan_(plan), random_(seed), batcher_(MakeBatcher(plan.mode, plan.options)) {
  ReadyEngine();
}

void World::Require(bool holds, const char* sentence) const {
  if (!holds) throw std::logic_error(sentence);
}

Arrived World::RandomRequest() {
  Arrived about;
  // Few beginnings, so that many prompts begin alike.
  const int beginning = Random(3);
  const int shared = Random(plan_.prompt_max);
  const int size = std::max(1, shared - 4 + Random(8));
  for (int i = 0; i < size; ++i) about.tokens.push_back(i < shared ? beginning : Random(1000));
  about.new_max = 1 + Random(plan_.new_max);
  about.priority = static_cast<uint32_t>(Random(3));
  about.deadline_us = plan_.cancels && Random(4) == 0 ? 1 + Random(400'000) : 0;
  about.salt = static_cast<uint64_t>(Random(2));
  about.copies = plan_.copies && Random(3) == 0 ? 1 + Random(4) : 1;
  about.needs_drawn = Random(5) == 0;
  return about;
}

RequestId World::Arrive(Arrived about) {
  about.request = ++last_request_;
  for (int32_t copy = 0; copy < about.copies; ++copy) {
    Answer answer;
    answer.tokens = about.tokens;
    answer.tokens_max = static_cast<int32_t>(about.tokens.size()) + about.new_max;
    answer.arrived_us = now_us_;
    answer.priority = about.priority;
    answer.salt = about.salt;
    answer.needs_drawn = about.needs_drawn;
    answers_[{about.request, copy}] = answer;
  }
  Tell(about);
  return about.request;
}

void World::Cancel() {
  // Now and then one that has ended.
  Tell(Cancelled{last_request_ - std::min<uint64_t>(last_request_, random_() % 12)});
}

bool World::FinishStep() {
  if (in_flight_.empty()) return false;
  const iteration::Step step = in_flight_.front();
  in_flight_.pop_front();
  written_.pop_front();
  StepDone done = {step.number, {}};
  for (const Row& row : step.rows) {
    for (int32_t copy = row.copy; copy < row.copy + row.samples; ++copy) {
      const int32_t position = row.first + row.count;
      const Sampled sampled = {TokenAt(row.request, copy, position), Random(40) == 0};
      done.sampled.push_back(sampled);
      const std::map<AnswerId, Answer>::iterator answer = answers_.find({row.request, copy});
      if (answer != answers_.end()) answer->second.tokens.push_back(sampled.token);
    }
  }
  Tell(done);
  return true;
}

void World::LoseEngine() {
  in_flight_.clear();
  written_.clear();
  engine_ready_ = false;
  for (std::pair<const AnswerId, Answer>& each : answers_) each.second.computed = 0;
  Tell(EngineLost{});
}

void World::ReadyEngine() {
  const int32_t blocks = plan_.blocks_min + Random(plan_.blocks_max - plan_.blocks_min + 1);
  slots_.assign(static_cast<size_t>(blocks * kBlockTokens), 0);
  engine_ready_ = true;
  Tell(EngineReady{blocks});
}

void World::Step() {
  PassTime(Random(10'000));
  if (timer_us_ <= now_us_) return Tell(Timer{});
  if (!engine_ready_ && Random(4) == 0) return ReadyEngine();
  const int kind = Random(100);
  if (kind < 30) return Arrive();
  if (kind < 34 && plan_.cancels) return Cancel();
  if (kind == 34 && plan_.losses && engine_ready_) return LoseEngine();
  FinishStep();
}

void World::ComeToRest() {
  if (!engine_ready_) ReadyEngine();
  while (FinishStep()) PassTime(Random(10'000));
  Require(answers_.empty(), "an answer is owed and nothing is in flight");
  Require(batcher_->state().requests.empty(), "a sequence is kept that has ended");
  Require(batcher_->state().blocks.referenced() == 0, "a block is referenced by nothing");
}

void World::Tell(const Event& event) {
  ++events_;
  std::vector<Action> actions;
  batcher_->OnEvent(event, now_us_, &actions);
  for (const Action& action : actions) {
    Note(action.index());
    std::visit([this](const auto& each) { Apply(each); }, action);
  }
  Check(batcher_->state());
  Require(!engine_ready_ || !in_flight_.empty() || answers_.empty(),
          "the engine idles while answers are owed");
}

void World::CheckStep(const iteration::Step& step) const {
  const Options& options = plan_.options;
  Require(engine_ready_, "a step without an engine");
  Require(in_flight_.size() < static_cast<size_t>(options.steps_in_flight_max),
          "too many steps are in flight");
  Require(step.rows.size() <= static_cast<size_t>(options.answers_max), "too many rows");
  int32_t tokens = 0;
  for (const Row& row : step.rows) {
    tokens += row.count;
    Require(row.count > 0, "a row without tokens");
    CheckAhead(row);
  }
  Require(plan_.mode != "budget" || tokens <= options.tokens_max, "too many tokens");
}

// A row follows the token that the step before draws for the same answer, or all of that row's
// tokens are known.
void World::CheckAhead(const Row& row) const {
  int32_t drawn = -1;
  for (const iteration::Step& other : in_flight_) {
    int32_t sample = 0;
    for (const Row& before : other.rows) {
      const bool same = before.request == row.request && before.copy == row.copy;
      Require(!same || plan_.options.ahead, "an answer is in two steps");
      if (same && before.samples > 0) drawn = sample;
      sample += before.samples;
    }
    Require(sample == other.samples, "another number of samples than the step says");
  }
  Require(row.follows == drawn, "a row follows another token than the step before draws");
}

World::Answer World::Foreseen(const Row& row, const Answer& answer) const {
  Answer foreseen = answer;
  if (row.follows < 0) return foreseen;
  Require(!answer.needs_drawn, "an answer goes ahead whose next token depends on the last");
  foreseen.tokens.push_back(
      TokenAt(row.request, row.copy, static_cast<int32_t>(answer.tokens.size())));
  Require(static_cast<int32_t>(foreseen.tokens.size()) < answer.tokens_max,
          "a row follows the last token of an answer");
  return foreseen;
}

void World::RequireUnwritten(const Row& row, BlockId block) const {
  for (const std::vector<Written>& step : written_) {
    for (const Written& other : step) {
      const bool same = other.answer == AnswerId{row.request, row.copy};
      const bool writes =
          std::find(other.blocks.begin(), other.blocks.end(), block) != other.blocks.end();
      Require(same || !writes, "a row uses a block that a step in flight writes for another");
    }
  }
}

void World::Apply(const iteration::Step& step) {
  CheckStep(step);
  written_.emplace_back();
  for (const BlockCopy& copy : step.copies) {
    std::copy_n(slots_.begin() + copy.from * kBlockTokens, kBlockTokens,
                slots_.begin() + copy.to * kBlockTokens);
  }
  std::vector<AnswerId> rows;
  for (const Row& row : step.rows) {
    Note(row.request * 64 + static_cast<uint64_t>(row.first));
    rows.push_back({row.request, row.copy});
    Compute(row);
  }
  steps_.push_back(rows);
  in_flight_.push_back(step);
}

void World::Compute(const Row& row) {
  const std::map<AnswerId, Answer>::iterator found = answers_.find({row.request, row.copy});
  Require(found != answers_.end(), "a row of an answer that was told to have ended");
  Answer* const answer = &found->second;
  ++answer->iterations;
  if (answer->begun_us < 0) answer->begun_us = now_us_;
  Require(row.table_first <= static_cast<int32_t>(answer->table.size()), "a gap in a table");
  answer->table.resize(static_cast<size_t>(row.table_first));
  answer->table.insert(answer->table.end(), row.blocks.begin(), row.blocks.end());
  Require(answer->computed == 0 || row.first == answer->computed,
          "a row does not go on where the last one ended, and no preemption was told");
  const int32_t end = row.first + row.count;
  answer->computed = end;
  const Answer known = Foreseen(row, *answer);
  Require(end <= static_cast<int32_t>(known.tokens.size()), "a token that is not known yet");
  Require((row.samples > 0) == (end == static_cast<int32_t>(known.tokens.size())),
          "a row samples unless it ends with the last token");
  Written written = {{row.request, row.copy}, {}};
  for (int32_t position = 0; position < end; ++position) {
    const size_t at = static_cast<size_t>(position / kBlockTokens);
    Require(at < answer->table.size(), "a token without a block");
    const BlockId block = answer->table[at];
    RequireUnwritten(row, block);
    uint64_t* const slot =
        &slots_[static_cast<size_t>(block * kBlockTokens + position % kBlockTokens)];
    if (position >= row.first) {
      *slot = HashUpTo(known, position);
      written.blocks.push_back(block);
    }
    Require(*slot == HashUpTo(known, position), "a block has not what its table says");
  }
  written_.back().push_back(std::move(written));
}

void World::Apply(const Finished& finished) {
  Note(finished.request * 8 + static_cast<uint64_t>(finished.why));
  Require(answers_.erase({finished.request, finished.copy}) == 1, "an answer is told twice");
  finished_.push_back(finished);
}

void World::Apply(const Preempted& preempted) {
  Note(preempted.request * 32 + static_cast<uint64_t>(preempted.copy));
  const std::map<AnswerId, Answer>::iterator found =
      answers_.find({preempted.request, preempted.copy});
  Require(found != answers_.end(), "an answer is preempted that was told to have ended");
  for (const iteration::Step& step : in_flight_) {
    for (const Row& row : step.rows) {
      Require(row.request != preempted.request || row.copy != preempted.copy,
              "an answer is preempted that a step has");
    }
  }
  found->second.computed = 0;
}

void World::Apply(const Rejected& rejected) {
  Require(std::erase_if(answers_,
                        [&rejected](const std::pair<const AnswerId, Answer>& each) {
                          return each.first.first == rejected.request;
                        }) > 0,
          "a request is refused that was accepted");
  Require((rejected.why == Refusal::kQueueFull) == (rejected.retry_after_s > 0),
          "only a full queue is worth trying again");
}

}  // namespace scheduler::batching::iteration

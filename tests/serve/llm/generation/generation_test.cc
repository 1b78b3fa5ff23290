// The pure part of generating, against the engine of fake_engine.h.
#include "serve/llm/generation/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "scheduler/batching/iteration/modes.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/serve/llm/generation/fake_engine.h"

namespace serve::llm {
namespace {

namespace iteration = scheduler::batching::iteration;

// Expects the rule's tokens, each once.
class Listener final : public GenerationListener {
 public:
  explicit Listener(GenerationRequest request) : request(std::move(request)) {
    for (int32_t answer = 0; answer < this->request.answers; ++answer)
      answers_.push_back(this->request.prompt);
    ended.resize(answers_.size());
  }

  void OnBegan(const Beginning& beginning) override {
    EXPECT_FALSE(began.has_value() || left || rejected);
    EXPECT_GE(beginning.queued_us, 0);
    EXPECT_LT(beginning.cached_tokens, static_cast<int32_t>(request.prompt.size()));
    began = beginning;
  }
  bool OnToken(const GeneratedToken& token) override {
    EXPECT_TRUE(began.has_value() && !left && !rejected);
    std::vector<int32_t>& tokens = answers_[static_cast<size_t>(token.answer)];
    EXPECT_FALSE(ended[static_cast<size_t>(token.answer)].has_value());
    EXPECT_EQ(token.token, RuleOf(tokens, request.sampling.seed, token.answer));
    const std::vector<int32_t>& stops = request.sampling.stop_tokens;
    EXPECT_EQ(token.stops, std::find(stops.begin(), stops.end(), token.token) != stops.end());
    tokens.push_back(token.token);
    if (on_token) on_token();
    return token.token % 29 == 0;
  }
  void OnAnswerEnded(int32_t answer, Ending why) override {
    EXPECT_FALSE(left);
    std::optional<Ending>& end = ended[static_cast<size_t>(answer)];
    EXPECT_FALSE(end.has_value());
    end = why;
    const std::vector<int32_t>& tokens = answers_[static_cast<size_t>(answer)];
    const bool stops =
        tokens.back() % 29 == 0 || tokens.back() == request.sampling.stop_tokens.at(0);
    const size_t length = request.prompt.size() + static_cast<size_t>(request.new_max);
    EXPECT_TRUE(why != Ending::kStopped || stops);
    EXPECT_TRUE(why != Ending::kLength || tokens.size() <= length);  // a pool may be small
  }
  void OnRejected(Refusal, int64_t) override { rejected = true; }

  bool IsDone() const {
    return left || rejected ||
           std::all_of(ended.begin(), ended.end(), [](const auto& end) { return end.has_value(); });
  }
  size_t generated(size_t answer) const { return answers_[answer].size() - request.prompt.size(); }

  const GenerationRequest request;
  std::optional<Beginning> began;
  std::vector<std::optional<Ending>> ended;
  bool left = false;
  bool rejected = false;
  std::function<void()> on_token;

 private:
  std::vector<std::vector<int32_t>> answers_;
};

GenerationOptions OptionsOf(const std::string& batching, bool ahead = false) {
  GenerationOptions options;
  options.batcher.ahead = ahead;
  if (ahead) options.batcher.steps_in_flight_max = 2;
  options.batching = batching;
  options.vocabulary = kVocabulary;
  options.batcher.context_max = 160;
  options.batcher.answers_max = 6;
  options.batcher.tokens_max = 20;
  return options;
}

class World {
 public:
  World(const std::string& batching, bool ahead, uint64_t seed)
      : random_(seed),
        options_(OptionsOf(batching, ahead)),
        engine_(options_),
        generation_(options_, &engine_) {}

  void Run(int events) {
    for (int i = 0; i < events; ++i) Step();
    Start();
    for (int i = 0; !generation_.empty(); ++i) {
      ASSERT_LT(i, 100'000) << "requests do not end";
      AnswerPlan();
    }
    for (const std::unique_ptr<Listener>& listener : listeners_) EXPECT_TRUE(listener->IsDone());
  }

 private:
  int32_t Below(int32_t end) {
    return static_cast<int32_t>(random_() % static_cast<uint64_t>(end));
  }
  void Start() {
    const int32_t blocks = 10 + Below(20);
    engine_.Restart(blocks);
    lost_ = false;
    generation_.OnEngineReady(blocks, ++now_us_);
  }
  void Step() {
    const int32_t kind = Below(40);
    if (kind < 8) return Submit();
    if (kind == 8) return Cancel();
    if (kind == 9 || (lost_ && kind < 20)) {
      if (lost_) return Start();
      lost_ = true;
      engine_.answers.clear();
      return generation_.OnEngineLost("it was killed", ++now_us_);
    }
    if (engine_.timer_us <= now_us_) generation_.OnTimer(now_us_);
    AnswerPlan();
  }
  void AnswerPlan() {
    if (engine_.answers.empty()) return;
    const Answer answer = engine_.answers.front();
    engine_.answers.pop_front();
    ASSERT_TRUE(generation_.OnAnswerUntrusted(answer, ++now_us_).ok());
  }
  void Submit() {
    GenerationRequest request;
    request.prompt.resize(static_cast<size_t>(1 + Below(70)));
    const int32_t letters = Below(4) == 0 ? 1 : kVocabulary;  // some share what is computed
    for (int32_t& token : request.prompt) token = Below(letters);
    request.new_max = 1 + Below(60);
    request.answers = Below(4) == 0 ? 1 + Below(4) : 1;
    request.sampling.seed = random_() % 5;
    request.sampling.presence_penalty = Below(4) == 0 ? 1 : 0;
    request.sampling.stop_tokens = {Below(kVocabulary)};
    request.deadline_us = Below(10) == 0 ? 1 + Below(100) : 0;
    listeners_.push_back(std::make_unique<Listener>(request));
    ids_.push_back(generation_.Submit(request, listeners_.back().get(), ++now_us_));
  }
  void Cancel() {
    if (ids_.empty()) return;
    const size_t which = static_cast<size_t>(Below(static_cast<int32_t>(ids_.size())));
    if (listeners_[which]->IsDone()) return;
    listeners_[which]->left = true;
    generation_.Cancel(ids_[which], ++now_us_);
  }

  std::mt19937_64 random_;
  const GenerationOptions options_;
  FakeEngine engine_;
  Generation generation_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<RequestId> ids_;
  int64_t now_us_ = 0;
  bool lost_ = true;
};

TEST(GenerationTest, EachTokenIsToldOnceWhateverHappens) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < (harness::kSanitized ? 8 : 40); ++round) {
    for (const std::string& batching : iteration::ModeNames())
      World(batching, false, random()).Run(400);
    World("budget", true, random()).Run(400);
    if (::testing::Test::HasFailure()) return;
  }
}

struct OneRequest {
  explicit OneRequest(GenerationRequest request, const std::string& batching = "budget")
      : options(OptionsOf(batching)),
        engine(options),
        generation(options, &engine),
        listener(request) {
    engine.Restart(20);
    generation.OnEngineReady(20, 1);
    id = generation.Submit(listener.request, &listener, 1);
  }
  absl::Status Answer() {
    const llm::Answer answer = engine.answers.front();
    engine.answers.pop_front();
    return generation.OnAnswerUntrusted(answer, 2);
  }

  const GenerationOptions options;
  FakeEngine engine;
  Generation generation;
  Listener listener;
  RequestId id = 0;
};

GenerationRequest RequestOf(size_t prompt, int32_t new_max) {
  GenerationRequest request;
  request.prompt.assign(prompt, 7);
  request.new_max = new_max;
  request.sampling.stop_tokens = {kVocabulary - 1};
  return request;
}

TEST(GenerationTest, AListenerMayCancelAndSubmit) {
  OneRequest one(RequestOf(5, 50));
  Listener other(RequestOf(6, 3));
  one.listener.on_token = [&] {
    one.listener.left = true;
    one.generation.Cancel(one.id, 2);
    one.generation.Submit(other.request, &other, 2);
  };
  ASSERT_TRUE(one.Answer().ok());
  EXPECT_EQ(one.listener.generated(0), 1u);
  while (!one.engine.answers.empty()) ASSERT_TRUE(one.Answer().ok());
  EXPECT_TRUE(other.IsDone());
  EXPECT_TRUE(one.generation.empty());
}

TEST(GenerationTest, ABeginningTellsWhatTheCacheHadAndHowLongItTook) {
  OneRequest one(RequestOf(40, 3));
  while (!one.engine.answers.empty()) ASSERT_TRUE(one.Answer().ok());
  EXPECT_EQ(one.listener.began->cached_tokens, 0);
  EXPECT_EQ(one.listener.began->queued_us, 0);
  one.generation.OnEngineLost("it was killed", 10);
  Listener cold(RequestOf(40, 3)), warm(RequestOf(40, 3));
  one.generation.Submit(cold.request, &cold, 10);
  one.engine.Restart(20);
  one.generation.OnEngineReady(20, 25);
  EXPECT_EQ(cold.began->queued_us, 15);
  EXPECT_EQ(cold.began->cached_tokens, 0) << "the cache went with its engine";
  while (!one.engine.answers.empty()) {
    const Answer answer = one.engine.answers.front();
    one.engine.answers.pop_front();
    ASSERT_TRUE(one.generation.OnAnswerUntrusted(answer, 30).ok());
  }
  one.generation.Submit(warm.request, &warm, 40);
  EXPECT_EQ(warm.began->cached_tokens, 32) << "two blocks of 16";
}

// Two answers on three blocks: the second one is preempted, and then the engine is lost.
TEST(GenerationTest, TheHistoryKnowsStepsAndRequests) {
  GenerationOptions options = OptionsOf("budget");
  options.batcher.watermark_blocks = 0;
  FakeEngine engine(options);
  Generation generation(options, &engine);
  GenerationRequest asked = RequestOf(15, 30);
  Listener first(asked);
  asked.id = "cmpl-2";
  asked.prompt.assign(15, 8);
  Listener second(asked);
  int64_t now_us = 1;
  const auto start = [&] {
    engine.Restart(3);
    generation.OnEngineReady(3, ++now_us);
  };
  const auto answer = [&] {
    Answer next = engine.answers.front();
    engine.answers.pop_front();
    next.step_us = 2;
    return generation.OnAnswerUntrusted(next, now_us += 5);
  };
  const auto told = [&] { return generation.history().Tell(); };
  start();
  generation.Submit(first.request, &first, now_us);
  generation.Submit(second.request, &second, now_us);
  while (told().requests.back().preemptions == 0) ASSERT_TRUE(answer().ok());
  ASSERT_EQ(told().requests.size(), 2u);
  EXPECT_EQ(told().requests[1].id, "cmpl-2");
  EXPECT_EQ(told().steps.back().preemptions, 1);
  EXPECT_EQ(told().loads.back(), (history::LoadRecord{now_us, 1, 1, told().steps.back().blocks}));
  generation.OnEngineLost("it was killed", ++now_us);
  EXPECT_TRUE(told().steps.back().lost);
  EXPECT_EQ(told().requests[0].recomputations, 1);
  EXPECT_EQ(told().requests[1].recomputations, 0);
  start();
  while (!engine.answers.empty()) ASSERT_TRUE(answer().ok());
  const history::Records records = told();
  ASSERT_EQ(records.requests.size(), 2u);
  for (const history::RequestRecord& request : records.requests) {
    EXPECT_NE(request.outcome, history::Outcome::kOpen);
    const Listener& listener = request.number == 1 ? first : second;
    EXPECT_EQ(request.generated_tokens, static_cast<int64_t>(listener.generated(0)));
  }
  for (const history::StepRecord& step : records.steps)
    EXPECT_TRUE(step.lost || step.computed_us == 2);
  EXPECT_EQ(records.loads.back().running + records.loads.back().waiting, 0);
  EXPECT_EQ(records.engines.back().blocks, 3);
}

// A step of Orca's is cut in parts. What parts have drawn is told when all are there: an engine
// that is lost between them has drawn nothing.
TEST(GenerationTest, APartOfAStepTellsNothing) {
  OneRequest one(RequestOf(5, 4), "orca");
  Listener other(RequestOf(60, 4));
  other.on_token = [] {};
  one.generation.Submit(other.request, &other, 1);
  ASSERT_TRUE(one.Answer().ok());  // the first request's prompt was alone
  ASSERT_EQ(one.listener.generated(0), 1u);
  ASSERT_EQ(one.engine.answers.size(), 4u);
  ASSERT_TRUE(one.Answer().ok());
  EXPECT_EQ(one.listener.generated(0), 1u);
  one.engine.Restart(20);
  one.generation.OnEngineLost("it was killed", 3);
  one.generation.OnEngineReady(20, 3);
  while (!one.engine.answers.empty()) ASSERT_TRUE(one.Answer().ok());
  EXPECT_TRUE(one.listener.IsDone() && other.IsDone());
}

TEST(GenerationTest, AnswersThatCannotBeAreRefused) {
  const auto refused = [](const std::function<void(Answer*)>& change, bool logprobs = false) {
    GenerationRequest request = RequestOf(5, 4);
    request.sampling.logprobs = logprobs ? 1 : kLogprobsUnwanted;
    OneRequest one(request);
    change(&one.engine.answers.front());
    const bool ok = one.Answer().ok();
    EXPECT_EQ(one.listener.generated(0), ok ? 1u : 0u);
    return !ok;
  };
  EXPECT_FALSE(refused([](Answer*) {}));
  EXPECT_TRUE(refused([](Answer* answer) { ++answer->number; }));
  EXPECT_TRUE(refused([](Answer* answer) { answer->result.tokens.push_back(1); }));
  EXPECT_TRUE(refused([](Answer* answer) { answer->result.tokens.clear(); }));
  EXPECT_TRUE(refused([](Answer* answer) { answer->result.tokens = {kVocabulary}; }));
  EXPECT_TRUE(refused([](Answer* answer) { answer->result.tokens = {-1}; }));
  EXPECT_TRUE(refused([](Answer* answer) { answer->result.logprobs = {1}; }));
  EXPECT_TRUE(refused([](Answer*) {}, true));
  const auto tell = [](Answer* answer) {
    answer->result.logprobs = {-1};
    answer->result.ranks = {0};
    answer->result.top_tokens = {3};
    answer->result.top_logprobs = {-1};
  };
  EXPECT_FALSE(refused(tell, true));
  EXPECT_TRUE(refused([&](Answer* answer) { tell(answer), answer->result.ranks.clear(); }, true));
  EXPECT_TRUE(
      refused([&](Answer* answer) { tell(answer), answer->result.top_tokens = {-3}; }, true));
  EXPECT_TRUE(refused([&](Answer* answer) { tell(answer), answer->result.top_tokens = {}; }, true));
}

}  // namespace
}  // namespace serve::llm

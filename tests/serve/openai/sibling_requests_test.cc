// Prompts of one body over the real batcher: when the request of one prompt is refused or fails, no
// later step has a row of the other prompts.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/llm/generation/generation.h"
#include "serve/openai/completion.h"
#include "tests/serve/openai/scripted_model.h"

namespace serve::openai {
namespace {

constexpr int32_t kBlocks = 64;
constexpr char kKiller = 'k';

// Keeps plans until they are answered: each answer repeats the row's last token.
class Plans final : public llm::Generation::Effects {
 public:
  void SendPlan(const llm::Plan& plan) override { open.push_back(plan); }
  void SetTimer(int64_t) override {}

  std::deque<llm::Plan> open;
};

llm::Answer AnswerTo(const llm::Plan& plan) {
  llm::Answer answer{plan.number, {}, 1};
  for (const llm::BatchRequest& request : plan.requests)
    answer.result.tokens.insert(answer.result.tokens.end(), request.samples.size(),
                                request.tokens.back());
  return answer;
}

// Of a request that has so many tokens or more.
bool HasRowOf(const llm::Plan& plan, char letter, int32_t length_min = 0) {
  for (const llm::BatchRequest& request : plan.requests) {
    if (request.tokens.back() == letter && request.length >= length_min) return true;
  }
  return false;
}

// The scripted model's text over a generator that plans steps.
class PlanningModel final : public ScriptedModel {
 public:
  explicit PlanningModel(const llm::GenerationOptions& options)
      : ScriptedModel([](const std::string&) {}), generation_(options, &plans_) {}

  llm::RequestId Submit(llm::GenerationRequest request, llm::GenerationListener* to) override {
    return generation_.Submit(std::move(request), to, ++now_us_);
  }
  void Cancel(llm::RequestId request) override { generation_.Cancel(request, ++now_us_); }

  void StartEngine() { generation_.OnEngineReady(kBlocks, ++now_us_); }
  void LoseEngine() {
    plans_.open.clear();
    generation_.OnEngineLost("a test", ++now_us_);
  }
  void AnswerNext() {
    const llm::Plan plan = std::move(plans_.open.front());
    plans_.open.pop_front();
    ASSERT_TRUE(generation_.OnAnswerUntrusted(AnswerTo(plan), ++now_us_).ok());
  }
  const std::deque<llm::Plan>& plans() const { return plans_.open; }
  bool empty() const { return generation_.empty(); }

 private:
  Plans plans_;
  llm::Generation generation_;
  int64_t now_us_ = 0;
};

class Client final : public http::Responder {
 public:
  void Reply(http::Answer answer) override {
    status = answer.status;
    text += answer.body;
    ++ends;
  }
  void BeginStream() override { status = 200; }
  void Send(std::string_view bytes) override { text += bytes; }
  void End() override { ++ends; }
  void OnGone(std::function<void()>) override {}

  int status = 0;  // 0: nothing came yet
  int ends = 0;
  std::string text;
};

class SiblingRequestsTest : public ::testing::Test {
 protected:
  void Begin(const std::string& body, int32_t queue_requests_max) {
    llm::GenerationOptions options;
    options.batcher.queue_requests_max = queue_requests_max;
    options.batcher.tokens_max = options.batcher.answers_max = 4;  // prompts take many steps
    options.vocabulary = 258;
    model_ = std::make_unique<PlanningModel>(options);
    body_ = body;
  }
  void Ask() {
    CompletionTerms terms;
    terms.fields = std::get<Parsed>(ParseBodyUntrusted(body_, kCompletions)).fields;
    terms.now_us = [] { return 0; };
    terms.ended = [this] { ++ended_; };
    std::variant<Prepared, Error> prepared = Prepare(terms.fields, kCompletions, *model_, 1);
    completion_ = std::make_shared<Completion>(std::move(terms), model_.get(), &metrics_, client_);
    completion_->Start(std::get<Prepared>(std::move(prepared)));
  }
  // No row is left after what runs, and the completion has ended once.
  void ExpectNothingIsComputed() {
    EXPECT_TRUE(model_->empty());
    EXPECT_TRUE(model_->plans().empty());
    EXPECT_TRUE(completion_->OpenRequests().empty());
    EXPECT_EQ(ended_, 1);
    EXPECT_EQ(client_->ends, 1);
  }
  // Kills the engine whenever a step has a row of the killer and the killer has so many tokens,
  // until the client is told.
  void KillUntilItFails(int32_t length_min = 0) {
    for (int step = 0; step < 1000 && client_->ends == 0; ++step) {
      if (model_->plans().empty()) {
        model_->StartEngine();
      } else if (HasRowOf(model_->plans().front(), kKiller, length_min)) {
        model_->LoseEngine();
      } else {
        model_->AnswerNext();
      }
    }
  }

  std::unique_ptr<PlanningModel> model_;
  std::string body_;
  metrics::Registry registry_;
  CompletionMetrics metrics_{&registry_, "scripted", {}};
  std::shared_ptr<Client> client_ = std::make_shared<Client>();
  std::shared_ptr<Completion> completion_;
  int ended_ = 0;
};

std::string Long(char letter) { return std::string(100, letter); }

TEST_F(SiblingRequestsTest, APromptThatIsRefusedEndsThoseThatWait) {
  Begin(R"({"prompt": ["aaa", "bbb", "ccc", "ddd"]})", 2);
  Ask();
  EXPECT_EQ(client_->status, 429);
  EXPECT_TRUE(model_->empty());
  model_->StartEngine();
  ExpectNothingIsComputed();
}

// The first prompt's step was sent before the third prompt was refused.
TEST_F(SiblingRequestsTest, APromptThatIsRefusedEndsTheOneThatRuns) {
  Begin(R"({"prompt": [")" + Long('a') + R"(", "bbb", "ccc"]})", 1);
  model_->StartEngine();
  Ask();
  EXPECT_EQ(client_->status, 429);
  ASSERT_EQ(model_->plans().size(), 1u);
  EXPECT_TRUE(HasRowOf(model_->plans().front(), 'a'));
  model_->AnswerNext();
  ExpectNothingIsComputed();
}

TEST_F(SiblingRequestsTest, APromptThatFailsEndsTheOthers) {
  Begin(R"({"prompt": ["k", ")" + Long('a') + R"(", ")" + Long('b') + R"("], "max_tokens": 50})",
        10);
  Ask();
  KillUntilItFails();
  EXPECT_EQ(client_->status, 500);
  model_->StartEngine();
  ExpectNothingIsComputed();
}

// The answers of all prompts are under way when the request of one fails.
TEST_F(SiblingRequestsTest, AStreamWhosePromptFailsIsNotComputedAnyMore) {
  Begin(R"({"prompt": ["k", "a", "b"], "max_tokens": 500, "stream": true})", 10);
  model_->StartEngine();
  Ask();
  KillUntilItFails(20);
  EXPECT_EQ(client_->status, 200);
  EXPECT_NE(client_->text.find(R"("index":2,"text":"b")"), std::string::npos) << client_->text;
  EXPECT_NE(client_->text.find("engine_fault"), std::string::npos) << client_->text;
  EXPECT_TRUE(client_->text.ends_with("data: [DONE]\n\n"));
  model_->StartEngine();
  ExpectNothingIsComputed();
}

// Of several answers to the prompt that fails, the first to end tells it.
TEST_F(SiblingRequestsTest, AnswersToThePromptThatFailsEndOnce) {
  Begin(R"({"prompt": ["k", ")" + Long('a') + R"("], "n": 3})", 10);
  Ask();
  KillUntilItFails();
  EXPECT_EQ(client_->status, 500);
  model_->StartEngine();
  ExpectNothingIsComputed();
}

}  // namespace
}  // namespace serve::openai

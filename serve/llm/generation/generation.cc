#include "serve/llm/generation/generation.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "scheduler/batching/iteration/modes.h"
#include "serve/llm/generation/step_parts.h"

namespace serve::llm {
namespace {

namespace iteration = scheduler::batching::iteration;

// Empty: the result can be used for so many tokens.
std::string FaultOf(const StepResult& result, size_t samples, bool with_logprobs,
                    int32_t vocabulary) {
  const auto is_token = [vocabulary](int32_t token) { return token >= 0 && token < vocabulary; };
  if (result.tokens.size() != samples) return "another number of tokens";
  if (!std::all_of(result.tokens.begin(), result.tokens.end(), is_token) ||
      !std::all_of(result.top_tokens.begin(), result.top_tokens.end(), is_token))
    return "a token beyond the vocabulary";
  const size_t wanted = with_logprobs ? samples : 0;
  if (result.logprobs.size() != wanted || result.ranks.size() != wanted ||
      result.top_tokens.size() != result.top_logprobs.size() ||
      (samples > 0 && result.top_tokens.size() % samples != 0))
    return "another number of log probabilities";
  return "";
}

}  // namespace

Generation::Generation(const GenerationOptions& options, Effects* effects)
    : options_(options),
      effects_(*effects),
      batcher_(iteration::MakeBatcher(options.batching, options.batcher)) {
  assert(batcher_ != nullptr);
}

// --- what happens --------------------------------------------------------------------------------

// An event that comes while another one is dealt with waits: the batcher and the requests are in
// order again when a listener has returned.
void Generation::Handle(Event event, int64_t now_us) {
  now_us_ = std::max(now_us_, now_us);
  events_.push_back(std::move(event));
  if (!busy_) HandleEvents();
}

void Generation::HandleEvents() {
  busy_ = true;
  while (!events_.empty()) {
    const Event next = std::move(events_.front());
    events_.pop_front();
    std::vector<iteration::Action> actions;
    batcher_->OnEvent(next, now_us_, &actions);
    for (const iteration::Action& action : actions)
      std::visit([this](const auto& each) { Perform(each); }, action);
    const iteration::State& state = batcher_->state();
    history_.OnLoad({now_us_, state.requests.running_answers(),
                     static_cast<int32_t>(state.requests.waiting().size()),
                     state.blocks.referenced()});
  }
  busy_ = false;
}

RequestId Generation::Submit(GenerationRequest request, GenerationListener* listener,
                             int64_t now_us) {
  const RequestId id = ++last_request_;
  iteration::Arrived arrived{id,
                             request.prompt,
                             request.new_max,
                             request.priority,
                             request.deadline_us,
                             request.salt,
                             request.answers,
                             NeedsDrawn(request.sampling)};
  std::unique_ptr<Request>& kept = requests_[id];
  kept = std::make_unique<Request>();
  kept->asked = std::move(request);
  kept->listener = listener;
  kept->arrived_us = now_us;
  history::RequestRecord record;
  record.number = id;
  record.id = kept->asked.id;
  record.priority = kept->asked.priority;
  record.answers = kept->asked.answers;
  record.prompt_tokens = static_cast<int32_t>(kept->asked.prompt.size());
  history_.OnArrived(std::move(record), now_us);
  Handle(std::move(arrived), now_us);
  return id;
}

void Generation::Cancel(RequestId request, int64_t now_us) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  found->second->listener = nullptr;
  Handle(scheduler::batching::Cancelled{request}, now_us);
}

// The batcher takes a new engine for the loss of the one before, whether that was told or not.
void Generation::OnEngineReady(int32_t blocks, int64_t now_us) {
  flights_.clear();
  answered_.clear();
  history_.OnEngineReady(blocks, now_us);
  Handle(iteration::EngineReady{blocks}, now_us);
}

void Generation::OnEngineLost(const std::string& why, int64_t now_us) {
  flights_.clear();
  answered_.clear();
  history_.OnEngineLost(why, now_us);
  Handle(iteration::EngineLost(), now_us);
}

void Generation::OnTimer(int64_t now_us) { Handle(scheduler::batching::Timer(), now_us); }

absl::Status Generation::OnAnswerUntrusted(const Answer& answer, int64_t now_us) {
  if (flights_.empty() || flights_.front().plan != answer.number)
    return absl::InvalidArgumentError("the engine answers a step that it was not told");
  const Flight& next = flights_.front();
  const bool with_logprobs = std::any_of(next.draws.begin(), next.draws.end(),
                                         [](const Draw& draw) { return draw.logprobs; });
  const std::string fault =
      FaultOf(answer.result, next.draws.size(), with_logprobs, options_.vocabulary);
  if (!fault.empty())
    return absl::InvalidArgumentError(absl::StrCat("the engine answers a step with ", fault));
  answered_.push_back(std::move(flights_.front()));
  flights_.pop_front();
  answered_.back().result = answer.result;
  answered_.back().step_us = answer.step_us;
  if (answered_.back().ends_step) EndStep(now_us);
  return absl::OkStatus();
}

// No token is told before the step is answered whole: the batcher, which hears of whole steps,
// would have tokens drawn again that an engine had drawn before it was lost.
void Generation::EndStep(int64_t now_us) {
  const std::vector<Flight> parts = std::exchange(answered_, {});
  iteration::StepDone done{parts.back().step, {}};
  now_us_ = std::max(now_us_, now_us);
  busy_ = true;
  uint64_t computed_us = 0;
  for (const Flight& part : parts) {
    computed_us += part.step_us;
    for (size_t at = 0; at < part.draws.size(); ++at)
      done.sampled.push_back(Tell(part.draws[at], part.result, at));
  }
  busy_ = false;
  history_.OnStepEnded(done.step, computed_us, now_us);
  Handle(std::move(done), now_us);
}

// --- tokens --------------------------------------------------------------------------------------

GrowingAnswer* Generation::FindAnswer(const Draw& draw) {
  const auto found = requests_.find(draw.request);
  if (found == requests_.end()) return nullptr;
  const size_t number = static_cast<size_t>(draw.answer);
  std::vector<std::unique_ptr<GrowingAnswer>>& answers = found->second->answers;
  return number < answers.size() ? answers[number].get() : nullptr;
}

// An answer may have ended while the step ran, by its client or its deadline.
Generation::Sampled Generation::Tell(const Draw& draw, const StepResult& result, size_t at) {
  GrowingAnswer* const answer = FindAnswer(draw);
  if (answer == nullptr) return {};
  Request& request = *requests_.at(draw.request);
  GeneratedToken token;
  token.answer = draw.answer;
  token.token = result.tokens[at];
  token.stops = answer->StopsAt(token.token);
  if (draw.logprobs) {
    token.logprob = result.logprobs[at];
    token.rank = result.ranks[at];
    // The plan tells as many as the request that wants the most.
    const size_t told = result.top_tokens.size() / result.tokens.size();
    const size_t wanted = static_cast<size_t>(request.asked.sampling.logprobs);
    for (size_t i = at * told; i < at * told + std::min(told, wanted); ++i)
      token.top.push_back({result.top_tokens[i], result.top_logprobs[i]});
  }
  answer->Append(token.token);
  history_.OnToken(draw.request, now_us_);
  const bool ends = request.listener != nullptr && request.listener->OnToken(token);
  return {token.token, token.stops || ends};
}

// --- what to do ----------------------------------------------------------------------------------

// Not when the request arrives: it may be refused for the number of answers.
void Generation::MakeAnswers(Request* request) {
  if (!request->answers.empty()) return;
  request->open = request->asked.answers;
  for (int32_t number = 0; number < request->asked.answers; ++number)
    request->answers.push_back(
        std::make_unique<GrowingAnswer>(request->asked, number, options_.end_tokens));
}

BatchRequest Generation::PlanRow(const iteration::Row& row) {
  Request& request = *requests_.at(row.request);
  MakeAnswers(&request);
  GrowingAnswer& answer = *request.answers[static_cast<size_t>(row.copy)];
  answer.blocks.resize(static_cast<size_t>(row.table_first));
  answer.blocks.insert(answer.blocks.end(), row.blocks.begin(), row.blocks.end());
  BatchRequest planned;
  const bool ahead = row.follows >= 0;
  planned.tokens = ahead ? std::vector<int32_t>(1) : answer.Tokens(row.first, row.count);
  planned.follows = row.follows;
  planned.length = row.first + row.count;
  planned.blocks = answer.blocks;
  for (int32_t copy = row.copy; copy < row.copy + row.samples; ++copy)
    planned.samples.push_back(request.answers[static_cast<size_t>(copy)]->NextSampling(ahead));
  return planned;
}

// A first row begins behind what the cache of prefixes had.
void Generation::TellBeginnings(const Step& step) {
  for (const iteration::Row& row : step.rows) {
    Request& request = *requests_.at(row.request);
    if (std::exchange(request.has_begun, true) || request.listener == nullptr) continue;
    request.listener->OnBegan({now_us_ - request.arrived_us, row.first});
  }
}

void Generation::Perform(const Step& step) {
  history_.OnStepBegan(step, batcher_->state().blocks.referenced(), now_us_);
  TellBeginnings(step);
  std::vector<BatchRequest> rows;
  std::deque<Draw> draws;
  for (const iteration::Row& row : step.rows) {
    rows.push_back(PlanRow(row));
    const bool logprobs = requests_.at(row.request)->asked.sampling.logprobs != kLogprobsUnwanted;
    for (int32_t copy = row.copy; copy < row.copy + row.samples; ++copy)
      draws.push_back({row.request, copy, logprobs});
  }
  std::vector<std::pair<int32_t, int32_t>> copies;
  for (const iteration::BlockCopy& copy : step.copies) copies.emplace_back(copy.from, copy.to);
  std::vector<Plan> plans = PartsOf(std::move(rows), std::move(copies),
                                    {options_.batcher.tokens_max, options_.batcher.answers_max});
  // A row names a sample of the step before, and the engine counts samples by plans.
  assert(!options_.batcher.ahead || plans.size() == 1);
  for (Plan& plan : plans) {
    plan.number = ++last_plan_;
    const std::deque<Draw>::iterator end = draws.begin() + static_cast<ptrdiff_t>(SamplesOf(plan));
    flights_.push_back(
        {plan.number, step.number, &plan == &plans.back(), {draws.begin(), end}, {}, 0});
    draws.erase(draws.begin(), end);
    effects_.SendPlan(plan);
  }
}

// A listener may be gone after this call.
void Generation::Perform(const iteration::Finished& finished) {
  history_.OnAnswerEnded(finished, now_us_);
  const auto found = requests_.find(finished.request);
  Request& request = *found->second;
  GenerationListener* const listener = request.listener;
  MakeAnswers(&request);  // which may end before it begins
  request.answers[static_cast<size_t>(finished.copy)].reset();
  if (--request.open == 0) requests_.erase(found);
  if (listener != nullptr) listener->OnAnswerEnded(finished.copy, finished.why);
}

void Generation::Perform(const scheduler::batching::Rejected& rejected) {
  history_.OnRejected(rejected.request, rejected.why, now_us_);
  const auto found = requests_.find(rejected.request);
  GenerationListener* const listener = found->second->listener;
  requests_.erase(found);
  if (listener != nullptr) listener->OnRejected(rejected.why, rejected.retry_after_s);
}

}  // namespace serve::llm

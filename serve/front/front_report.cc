#include "serve/front/front_report.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "scheduler/batching/iteration/why.h"
#include "serve/history/told_history.h"

namespace serve::front {
namespace {

using scheduler::batching::iteration::Standing;
using scheduler::batching::iteration::State;
using scheduler::batching::iteration::Why;
using scheduler::batching::iteration::WhyOf;
using Json = nlohmann::ordered_json;

// Names that users have chosen may be in any encoding.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ErrorJson(const std::string& sentence) { return {{"error", sentence}}; }

const char* StateOf(const ReportedModel& model) {
  if (model.is_draining) return "draining";
  switch (model.engine->state) {
    case llm::EngineState::kStarting:
      return "starting";
    case llm::EngineState::kLoading:
      return "loading";
    case llm::EngineState::kReady:
      return "ready";
    case llm::EngineState::kLost:
      return "restarting";
  }
  return "";
}

Json ModelReport(const ReportedModel& model) {
  const State& state = model.batcher->state();
  Json json = {{"id", model.id},
               {"state", StateOf(model)},
               {"batching", model.batcher->mode().name()},
               {"running", state.requests.running_answers()},
               {"waiting", state.requests.waiting().size()},
               {"tokens_per_second", model.tokens_per_second},
               {"generated_tokens", model.generated},
               {"kv_blocks", state.blocks.total()},
               {"kv_blocks_used", state.blocks.referenced()},
               {"kv_bytes", static_cast<uint64_t>(state.blocks.total()) * model.kv_block_bytes},
               {"weight_bytes", model.engine->bytes},
               {"prefix_query_tokens", state.counters.prefix_query_tokens},
               {"prefix_hit_tokens", state.counters.prefix_hit_tokens},
               {"preemptions", state.counters.preemptions},
               {"recomputed_tokens", state.counters.recomputed_tokens},
               {"engine_pids", model.engine->pids},
               {"engine_restarts", model.engine->restarts}};
  if (model.engine->state == llm::EngineState::kLoading && model.engine->bytes > 0)
    json["loaded"] =
        static_cast<double>(model.engine->bytes_done) / static_cast<double>(model.engine->bytes);
  if (model.engine->state == llm::EngineState::kLost) json["why"] = model.engine->why;
  return json;
}

std::string WhyNoEngine(const llm::EngineStatus& engine) {
  if (engine.state == llm::EngineState::kLoading)
    return "waits for the model's engine, which loads its weights";
  if (engine.state == llm::EngineState::kLost && !engine.why.empty())
    return absl::StrCat("waits for another engine, for the last one has ended: ", engine.why);
  return "waits for the model's engine, which starts";
}

std::string Sentence(const Why& why, const ReportedModel& model) {
  const scheduler::batching::iteration::Options& options = model.batcher->state().options;
  switch (why.standing) {
    case Standing::kLeaving:
      return "has ended";
    case Standing::kComputes:
    case Standing::kWaitsForStep:
      if (why.generated == 0)
        return absl::StrCat("runs: ", why.computed, " of the prompt's ", why.prompt,
                            " tokens are computed");
      return absl::StrCat("runs: ", why.generated, " of at most ", why.generated_max,
                          " tokens are generated");
    case Standing::kNoEngine:
      return WhyNoEngine(*model.engine);
    case Standing::kAlone:
      return "waits until nothing else runs, for engines have ended while they computed it";
    case Standing::kBehindAlone:
      return "waits for a request that runs alone, for engines have ended while they computed that "
             "one";
    case Standing::kBehind:
      return absl::StrCat("waits for its turn: ", why.ahead, " before it wait, too");
    case Standing::kBatch:
      return "waits until the whole batch that runs has ended";
    case Standing::kAnswers:
      return absl::StrCat("waits for the end of an answer, for no more than ", options.answers_max,
                          " run at once");
    case Standing::kBlocks:
      return absl::StrCat("waits for memory: to begin it needs ", why.blocks,
                          " blocks of keys and "
                          "values, and ",
                          why.available, " are free");
  }
  return "";
}

// One of several prompts stands for the call: the first that has not ended.
Json CallReport(const ReportedCall& call, const ReportedModel& model) {
  Json json = {{"id", call.id}, {"model", model.id}, {"age_us", call.age_us}};
  for (const llm::RequestId request : call.requests) {
    const std::optional<Why> why = WhyOf(*model.batcher, request);
    if (!why.has_value()) continue;
    json["prompts"] = call.requests.size();
    json["prompt_tokens"] = why->prompt;
    json["computed_tokens"] = why->computed;
    json["generated_tokens"] = why->generated;
    json["generated_tokens_max"] = why->generated_max;
    json["why"] = Sentence(*why, model);
    return json;
  }
  json["why"] = "has ended; its client has yet to read the answer";
  return json;
}

Json Head(const ReportInput& input) { return {{"pid", input.pid}, {"url", input.url}}; }

Json Models(const ReportInput& input) {
  Json json = Head(input);
  json["models"] = Json::array();
  for (const ReportedModel& model : input.models) json["models"].push_back(ModelReport(model));
  return json;
}

Json Calls(const ReportInput& input, const std::string& id) {
  Json json = Head(input);
  json["requests"] = Json::array();
  size_t left_out = 0;
  for (const ReportedCall& call : input.calls) {
    if (!id.empty() && call.id != id) continue;
    if (json["requests"].size() == kToldRequestsMax) {
      ++left_out;
      continue;
    }
    json["requests"].push_back(CallReport(call, input.models[call.model]));
  }
  json["left_out"] = left_out;
  return json;
}

std::string Trace(const ReportInput& input, uint64_t model) {
  if (model >= input.models.size())
    return Text(ErrorJson(absl::StrCat("the server has no model ", model, "; the first one is 0")));
  const ReportedModel& reported = input.models[model];
  history::ToldHistory told;
  told.pid = input.pid;
  told.job = input.job;
  told.url = input.url;
  told.models = input.models.size();
  told.model = reported.id;
  told.now_us = input.now_us;
  told.records = reported.history->Tell();
  return history::Encode(told);
}

}  // namespace

std::string AnswerUntrusted(const std::string& line, const ReportInput& input) {
  const Json question = Json::parse(line, nullptr, false);
  const auto text = [&](const char* name) {
    return question.is_object() && question.contains(name) && question[name].is_string()
               ? question[name].get<std::string>()
               : std::string();
  };
  if (text("command") == "models") return Text(Models(input));
  if (text("command") == "why") return Text(Calls(input, text("id")));
  if (text("command") == "trace") {
    const bool is_named = question.contains("model") && question["model"].is_number_unsigned();
    return Trace(input, is_named ? question["model"].get<uint64_t>() : 0);
  }
  return Text(ErrorJson("ask for \"models\", \"why\" or \"trace\" by a command"));
}

}  // namespace serve::front

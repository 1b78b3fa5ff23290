#include "serve/history/told_history.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace serve::history {
namespace {

constexpr const char* kOutcomeNames[kOutcomes] = {"open",
                                                  "stopped",
                                                  "length",
                                                  "cancelled",
                                                  "expired",
                                                  "engine fault",
                                                  "too long for the engine",
                                                  "refused: empty",
                                                  "refused: too long",
                                                  "refused: too many answers",
                                                  "refused: the queue is full"};

// Of any encoding.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename Record, typename TextOf>
void AppendList(const char* name, const std::deque<Record>& records, TextOf text_of,
                std::string* text) {
  absl::StrAppend(text, ",\"", name, "\":[");
  const char* comma = "";
  for (const Record& record : records) {
    absl::StrAppend(text, comma, text_of(record));
    comma = ",";
  }
  text->push_back(']');
}

std::string TextOf(const StepRecord& step) {
  return absl::StrCat("[", step.number, ",", step.begin_us, ",", step.end_us, ",", step.computed_us,
                      ",", step.prompt_tokens, ",", step.decode_tokens, ",", step.answers, ",",
                      step.blocks, ",", step.preemptions, ",", step.lost ? 1 : 0, "]");
}

std::string TextOf(const LoadRecord& load) {
  return absl::StrCat("[", load.at_us, ",", load.running, ",", load.waiting, ",", load.blocks, "]");
}

std::string TextOf(const PauseRecord& pause) {
  return absl::StrCat("[", pause.begin_us, ",", pause.end_us, ",", pause.engine_lost ? 1 : 0, ",",
                      pause.answer, "]");
}

std::string TextOf(const RequestRecord& request) {
  std::string text = absl::StrCat(
      "{\"number\":", request.number, ",\"id\":", Quoted(request.id),
      ",\"priority\":", request.priority, ",\"answers\":", request.answers,
      ",\"prompt_tokens\":", request.prompt_tokens, ",\"cached_tokens\":", request.cached_tokens,
      ",\"generated_tokens\":", request.generated_tokens, ",\"arrived_us\":", request.arrived_us);
  absl::StrAppend(
      &text, ",\"begun_us\":", request.begun_us, ",\"first_token_us\":", request.first_token_us,
      ",\"ended_us\":", request.ended_us, ",\"outcome\":\"", NameOf(request.outcome),
      "\",\"preemptions\":", request.preemptions, ",\"recomputations\":", request.recomputations);
  AppendList(
      "pauses", request.pauses, [](const PauseRecord& pause) { return TextOf(pause); }, &text);
  return text + "}";
}

std::string TextOf(const EngineRecord& engine) {
  return absl::StrCat("{\"started_us\":", engine.started_us, ",\"ready_us\":", engine.ready_us,
                      ",\"lost_us\":", engine.lost_us, ",\"blocks\":", engine.blocks,
                      ",\"why\":", Quoted(engine.why), "}");
}

}  // namespace

const char* NameOf(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

std::string Encode(const ToldHistory& told) {
  std::string text = absl::StrCat("{\"pid\":", told.pid, ",\"job\":", told.job,
                                  ",\"url\":", Quoted(told.url), ",\"models\":", told.models,
                                  ",\"model\":", Quoted(told.model), ",\"now_us\":", told.now_us);
  const auto text_of = [](const auto& record) { return TextOf(record); };
  AppendList("steps", told.records.steps, text_of, &text);
  AppendList("loads", told.records.loads, text_of, &text);
  AppendList("requests", told.records.requests, text_of, &text);
  AppendList("refused", told.records.refused, text_of, &text);
  AppendList("engines", told.records.engines, text_of, &text);
  return text + "}";
}

}  // namespace serve::history

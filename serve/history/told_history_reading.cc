#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/history/told_history.h"
#include "serve/json_depth.h"

namespace serve::history {
namespace {

using Json = nlohmann::json;

constexpr size_t kDepthMax = 8;

// Numbers of an answer. The first one that is missing or out of its range makes `ok` false.
class Reader {
 public:
  explicit Reader(int64_t now_us) : now_us_(now_us) {}

  template <typename Number>
  void Take(const Json* json, Number* number, int64_t most = std::numeric_limits<Number>::max()) {
    *number = static_cast<Number>(Whole(json, 0, most));
  }
  void Take(const Json* json, uint64_t* number) {
    *number = static_cast<uint64_t>(Whole(json, 0, std::numeric_limits<int64_t>::max()));
  }
  void TakeTime(const Json* json, int64_t* at_us) { *at_us = Whole(json, 0, now_us_); }
  void TakeFlag(const Json* json, bool* flag) { *flag = Whole(json, 0, 1) == 1; }
  void TakeAnswer(const Json* json, int32_t* answer) {
    *answer = static_cast<int32_t>(
        Whole(json, PauseRecord::kAllAnswers, std::numeric_limits<int32_t>::max()));
  }
  void Require(bool holds) { ok = ok && holds; }

  bool ok = true;

 private:
  int64_t Whole(const Json* json, int64_t least, int64_t most) {
    const bool is_whole =
        json != nullptr && json->is_number_integer() &&
        (!json->is_number_unsigned() ||
         json->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
    const int64_t value = is_whole ? json->get<int64_t>() : 0;
    Require(is_whole && value >= least && value <= most);
    return ok ? value : 0;
  }

  const int64_t now_us_;
};

const Json* Find(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const Json::const_iterator found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

const Json* At(const Json& list, size_t index) {
  return list.is_array() && index < list.size() ? &list[index] : nullptr;
}

std::string TextIn(const Json& object, const char* name) {
  const Json* const text = Find(object, name);
  return text != nullptr && text->is_string() ? text->get<std::string>() : "";
}

bool EndsAfter(int64_t begin_us, int64_t end_us) { return end_us == 0 || end_us >= begin_us; }

void Take(const Json& json, Reader* reader, StepRecord* step) {
  reader->Take(At(json, 0), &step->number);
  reader->TakeTime(At(json, 1), &step->begin_us);
  reader->TakeTime(At(json, 2), &step->end_us);
  reader->TakeTime(At(json, 3), &step->computed_us);
  reader->Take(At(json, 4), &step->prompt_tokens);
  reader->Take(At(json, 5), &step->decode_tokens);
  reader->Take(At(json, 6), &step->answers);
  reader->Take(At(json, 7), &step->blocks);
  reader->Take(At(json, 8), &step->preemptions);
  reader->TakeFlag(At(json, 9), &step->lost);
  reader->Require(EndsAfter(step->begin_us, step->end_us));
}

void Take(const Json& json, Reader* reader, LoadRecord* load) {
  reader->TakeTime(At(json, 0), &load->at_us);
  reader->Take(At(json, 1), &load->running);
  reader->Take(At(json, 2), &load->waiting);
  reader->Take(At(json, 3), &load->blocks);
}

void Take(const Json& json, Reader* reader, PauseRecord* pause) {
  reader->TakeTime(At(json, 0), &pause->begin_us);
  reader->TakeTime(At(json, 1), &pause->end_us);
  reader->TakeFlag(At(json, 2), &pause->engine_lost);
  reader->TakeAnswer(At(json, 3), &pause->answer);
  reader->Require(EndsAfter(pause->begin_us, pause->end_us));
}

void Take(const Json& json, Reader* reader, EngineRecord* engine) {
  reader->TakeTime(Find(json, "started_us"), &engine->started_us);
  reader->TakeTime(Find(json, "ready_us"), &engine->ready_us);
  reader->TakeTime(Find(json, "lost_us"), &engine->lost_us);
  reader->Take(Find(json, "blocks"), &engine->blocks);
  engine->why = TextIn(json, "why");
  reader->Require(EndsAfter(engine->started_us, engine->ready_us) &&
                  EndsAfter(std::max(engine->started_us, engine->ready_us), engine->lost_us));
}

// Fails, too, for more records than a front keeps.
template <typename Record>
void TakeList(const Json* list, size_t most, Reader* reader, std::deque<Record>* records) {
  reader->Require(list != nullptr && list->is_array() && list->size() <= most);
  if (!reader->ok) return;
  for (const Json& json : *list) {
    Record record;
    Take(json, reader, &record);
    if (!reader->ok) return;
    records->push_back(std::move(record));
  }
}

void TakeOutcome(const Json& json, Reader* reader, Outcome* outcome) {
  const std::string name = TextIn(json, "outcome");
  for (int number = 0; number < kOutcomes; ++number) {
    *outcome = static_cast<Outcome>(number);
    if (name == NameOf(*outcome)) return;
  }
  reader->Require(false);
}

// True when the times of a request rise. A request that never began has had no token.
bool IsInOrder(const RequestRecord& request) {
  if (request.begun_us == 0 && request.first_token_us != 0) return false;
  return EndsAfter(request.arrived_us, request.begun_us) &&
         EndsAfter(request.begun_us, request.first_token_us) &&
         EndsAfter(std::max({request.arrived_us, request.begun_us, request.first_token_us}),
                   request.ended_us);
}

void Take(const Json& json, Reader* reader, RequestRecord* request) {
  reader->Take(Find(json, "number"), &request->number);
  request->id = TextIn(json, "id");
  reader->Take(Find(json, "priority"), &request->priority);
  reader->Take(Find(json, "answers"), &request->answers);
  reader->Take(Find(json, "prompt_tokens"), &request->prompt_tokens);
  reader->Take(Find(json, "cached_tokens"), &request->cached_tokens);
  reader->Take(Find(json, "generated_tokens"), &request->generated_tokens);
  reader->TakeTime(Find(json, "arrived_us"), &request->arrived_us);
  reader->TakeTime(Find(json, "begun_us"), &request->begun_us);
  reader->TakeTime(Find(json, "first_token_us"), &request->first_token_us);
  reader->TakeTime(Find(json, "ended_us"), &request->ended_us);
  reader->Take(Find(json, "preemptions"), &request->preemptions);
  reader->Take(Find(json, "recomputations"), &request->recomputations);
  TakeOutcome(json, reader, &request->outcome);
  TakeList(Find(json, "pauses"), kPausesMax, reader, &request->pauses);
  reader->Require(IsInOrder(*request));
}

}  // namespace

bool DecodeUntrusted(const std::string& answer, ToldHistory* told) {
  if (IsDeeperThan(kDepthMax, answer)) return false;
  const Json json = Json::parse(answer, nullptr, false);
  *told = ToldHistory();
  Reader head(std::numeric_limits<int64_t>::max());
  head.Take(Find(json, "pid"), &told->pid);
  head.Take(Find(json, "job"), &told->job);
  head.Take(Find(json, "models"), &told->models);
  head.TakeTime(Find(json, "now_us"), &told->now_us);
  if (!head.ok) return false;
  told->url = TextIn(json, "url");
  told->model = TextIn(json, "model");
  Reader reader(told->now_us);
  Records* const records = &told->records;
  TakeList(Find(json, "steps"), kStepsMax, &reader, &records->steps);
  TakeList(Find(json, "loads"), kLoadsMax, &reader, &records->loads);
  TakeList(Find(json, "requests"), kRequestsMax + kOpenToldMax, &reader, &records->requests);
  TakeList(Find(json, "refused"), kRefusedMax, &reader, &records->refused);
  TakeList(Find(json, "engines"), kEnginesMax, &reader, &records->engines);
  return reader.ok;
}

}  // namespace serve::history

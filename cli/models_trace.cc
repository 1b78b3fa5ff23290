#include "cli/models_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/trace_events.h"

namespace cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using serve::history::EngineRecord;
using serve::history::LoadRecord;
using serve::history::PauseRecord;
using serve::history::RequestRecord;
using serve::history::StepRecord;
using serve::history::ToldHistory;

// Processes of the trace format are jobs by their numbers, and from here on models.
constexpr uint64_t kFirstProcess = 1 << 30;
// Threads of a model.
constexpr uint64_t kEngineThread = 1;
constexpr uint64_t kFirstStepsThread = 2;
constexpr size_t kStepsThreadsMax = 16;  // more steps than an engine has stages are not in flight
constexpr uint64_t kRefusedThread = kFirstStepsThread + kStepsThreadsMax;
constexpr uint64_t kFirstRequestThread = kRefusedThread + 1;

int64_t EndOr(int64_t end_us, int64_t now_us) { return end_us == 0 ? now_us : end_us; }

// --- engines and steps ---------------------------------------------------------------------------

void AddEngine(const EngineRecord& engine, int64_t now_us, TraceEvents* events) {
  const int64_t end_us = EndOr(engine.lost_us, now_us);
  if (!events->IsSeen({engine.started_us, end_us})) return;
  events->NameThread(kEngineThread, "engine");
  events->Slice(kEngineThread, "engine", "loads",
                {engine.started_us, EndOr(engine.ready_us, end_us)});
  if (engine.ready_us != 0) {
    events->Slice(kEngineThread, "engine", "ready", {engine.ready_us, end_us},
                  {{"blocks", engine.blocks}});
  }
  if (engine.lost_us != 0)
    events->Instant(kEngineThread, absl::StrCat("lost: ", engine.why), engine.lost_us);
}

// Engines follow each other: one that a front tells otherwise begins when the last one has ended.
void AddEngines(const ToldHistory& told, TraceEvents* events) {
  int64_t last_us = 0;
  for (EngineRecord engine : told.records.engines) {
    engine.started_us = std::max(engine.started_us, last_us);
    if (engine.ready_us != 0) engine.ready_us = std::max(engine.ready_us, engine.started_us);
    if (engine.lost_us != 0)
      engine.lost_us = std::max({engine.lost_us, engine.started_us, engine.ready_us});
    last_us = EndOr(engine.lost_us, told.now_us);
    AddEngine(engine, told.now_us, events);
  }
}

OrderedJson ArgsOf(const StepRecord& step) {
  OrderedJson args = {{"number", step.number},
                      {"prompt_tokens", step.prompt_tokens},
                      {"decode_tokens", step.decode_tokens},
                      {"answers", step.answers},
                      {"blocks", step.blocks},
                      {"preemptions", step.preemptions},
                      {"computed_us", step.computed_us}};
  if (step.lost) args["lost"] = true;
  return args;
}

// Each on the first thread whose last step has ended.
void AddSteps(const ToldHistory& told, TraceEvents* events) {
  std::vector<StepRecord> steps(told.records.steps.begin(), told.records.steps.end());
  std::stable_sort(steps.begin(), steps.end(), [](const StepRecord& a, const StepRecord& b) {
    return a.begin_us < b.begin_us;
  });
  std::vector<int64_t> ended_us;  // by thread
  for (const StepRecord& step : steps) {
    const TraceSpan span = {step.begin_us, EndOr(step.end_us, told.now_us)};
    size_t thread = 0;
    while (thread < ended_us.size() && ended_us[thread] > span.begin_us) ++thread;
    if (thread == kStepsThreadsMax) continue;
    if (thread == ended_us.size()) ended_us.push_back(0);
    ended_us[thread] = span.end_us;
    if (!events->IsSeen(span)) continue;
    const uint64_t number = kFirstStepsThread + thread;
    events->NameThread(number,
                       thread == 0 ? "steps" : absl::StrCat("steps, ", thread + 1, " in flight"));
    events->Slice(number, "step", "step", span, ArgsOf(step));
  }
}

void AddLoad(const LoadRecord& load, TraceEvents* events) {
  events->Counter("running", load.at_us, load.running);
  events->Counter("waiting", load.at_us, load.waiting);
  events->Counter("KV blocks used", load.at_us, load.blocks);
}

// Of those before the window the last one counts.
void AddLoads(const ToldHistory& told, const TraceSpan& window, TraceEvents* events) {
  const LoadRecord* before = nullptr;
  for (const LoadRecord& load : told.records.loads) {
    if (load.at_us >= window.begin_us) break;
    before = &load;
  }
  if (before != nullptr) AddLoad(*before, events);
  for (const LoadRecord& load : told.records.loads) {
    if (load.at_us >= window.begin_us) AddLoad(load, events);
  }
}

// --- requests ------------------------------------------------------------------------------------

OrderedJson ArgsOf(const RequestRecord& request) {
  return {{"priority", request.priority},
          {"answers", request.answers},
          {"prompt_tokens", request.prompt_tokens},
          {"cached_tokens", request.cached_tokens},
          {"generated_tokens", request.generated_tokens},
          {"outcome", NameOf(request.outcome)},
          {"preemptions", request.preemptions},
          {"recomputations", request.recomputations}};
}

// A phase of the request, and in it the times for which the request had no memory. Pauses of
// several answers may overlap: a later one is then shown from the end of the earlier one.
void AddPhase(uint64_t thread, const char* name, const TraceSpan& phase,
              const RequestRecord& request, TraceEvents* events) {
  events->Slice(thread, "request", name, phase);
  int64_t last_us = phase.begin_us;
  for (const PauseRecord& pause : request.pauses) {
    if (pause.begin_us < phase.begin_us || pause.begin_us >= phase.end_us) continue;
    const char* const why = pause.engine_lost ? "engine lost" : "preempted";
    const TraceSpan span = {std::max(pause.begin_us, last_us),
                            std::min(EndOr(pause.end_us, phase.end_us), phase.end_us)};
    events->Instant(thread, why, pause.begin_us);
    if (span.end_us <= span.begin_us) continue;
    events->Slice(thread, "wait", absl::StrCat("waits: ", why), span);
    last_us = span.end_us;
  }
}

void AddRequest(uint64_t thread, const RequestRecord& request, int64_t now_us,
                TraceEvents* events) {
  const int64_t end_us = EndOr(request.ended_us, now_us);
  const TraceSpan whole = {request.arrived_us, end_us};
  if (!events->IsSeen(whole)) return;
  events->NameThread(thread, absl::StrCat("request ", request.id));
  events->Slice(thread, "request", request.id, whole, ArgsOf(request));
  events->Slice(thread, "request", "queued", {request.arrived_us, EndOr(request.begun_us, end_us)});
  if (request.begun_us == 0) return;
  AddPhase(thread, "prefill", {request.begun_us, EndOr(request.first_token_us, end_us)}, request,
           events);
  if (request.first_token_us == 0) return;
  AddPhase(thread, "decoding", {request.first_token_us, end_us}, request, events);
}

void AddRequests(const ToldHistory& told, TraceEvents* events) {
  uint64_t thread = kFirstRequestThread;
  for (const RequestRecord& request : told.records.requests)
    AddRequest(thread++, request, told.now_us, events);
  for (const RequestRecord& request : told.records.refused) {
    if (!events->IsSeen({request.arrived_us, request.arrived_us})) continue;
    events->NameThread(kRefusedThread, "refused");
    events->Instant(kRefusedThread, absl::StrCat(request.id, " ", NameOf(request.outcome)),
                    request.arrived_us);
  }
}

}  // namespace

// An open thing lasts until its front has answered.
TraceSpan WindowOf(const std::vector<ToldHistory>& models) {
  TraceSpan window = {models.front().now_us, models.front().now_us};
  for (const ToldHistory& told : models) {
    const auto begins = [&window](int64_t at_us) {
      window.begin_us = std::min(window.begin_us, at_us);
    };
    begins(told.now_us);
    for (const StepRecord& step : told.records.steps) begins(step.begin_us);
    for (const LoadRecord& load : told.records.loads) begins(load.at_us);
    for (const RequestRecord& request : told.records.requests) begins(request.arrived_us);
    for (const RequestRecord& request : told.records.refused) begins(request.arrived_us);
    for (const EngineRecord& engine : told.records.engines) begins(engine.started_us);
    window.end_us = std::max(window.end_us, told.now_us);
  }
  return window;
}

std::string ModelsTraceJson(const std::vector<ToldHistory>& models, const TraceSpan& window,
                            int64_t origin_us) {
  std::string text;
  uint64_t process = kFirstProcess;
  for (const ToldHistory& told : models) {
    TraceEvents events(process++, window, origin_us, &text);
    const std::string job = told.job == 0 ? "" : absl::StrCat("job ", told.job, ", ");
    events.NameProcess(absl::StrCat("model ", told.model, " (", job, told.url, ")"));
    AddEngines(told, &events);
    AddSteps(told, &events);
    AddLoads(told, window, &events);
    AddRequests(told, &events);
  }
  return text;
}

}  // namespace cli

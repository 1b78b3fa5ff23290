#include "serve/llm/generation/engine_generator.h"

#include <optional>
#include <utility>
#include <variant>

namespace serve::llm {

EngineGenerator::EngineGenerator(EventLoop* loop, EngineGeneratorOptions options, Observer observer)
    : loop_(*loop),
      options_(std::move(options)),
      observer_(std::move(observer)),
      generation_(options_.generation, this),
      stages_(static_cast<size_t>(options_.load.stages)),
      supervisor_(loop, options_.command, static_cast<size_t>(options_.load.stages), this) {}

EngineGenerator::~EngineGenerator() {
  loop_.CancelTimer(timer_);
  loop_.CancelTimer(drain_timer_);
}

RequestId EngineGenerator::Submit(GenerationRequest request, GenerationListener* listener) {
  return generation_.Submit(std::move(request), listener, loop_.NowUs());
}

void EngineGenerator::Cancel(RequestId request) {
  generation_.Cancel(request, loop_.NowUs());
  EndDrainIfEmpty();
}

void EngineGenerator::Drain(std::function<void()> done) {
  drained_ = std::move(done);
  EndDrainIfEmpty();
}

// By a timer: `done` may end this object, and so is called from the loop alone.
void EngineGenerator::EndDrainIfEmpty() {
  if (drained_ == nullptr || !generation_.empty() || drain_timer_ != 0) return;
  drain_timer_ = loop_.AddTimer(loop_.NowUs(), [this] {
    drain_timer_ = 0;
    if (generation_.empty()) std::exchange(drained_, nullptr)();
  });
}

void EngineGenerator::Observe() {
  status_.pids = supervisor_.pids();
  if (observer_) observer_(status_);
}

// --- the engine ----------------------------------------------------------------------------------

void EngineGenerator::OnEngineStarted() {
  Load load = options_.load;
  load.rows_max = options_.generation.batcher.tokens_max;
  load.requests_max = options_.generation.batcher.answers_max;
  for (load.stage = 0; load.stage < load.stages; ++load.stage)
    supervisor_.Send(static_cast<size_t>(load.stage), Encode(load));
  stages_ = StageStates(supervisor_.stages());
  generation_.OnEngineStarted(loop_.NowUs());
  status_.state = EngineState::kStarting;
  Observe();
}

void EngineGenerator::OnFrameUntrusted(size_t stage, const engine::Bytes& body) {
  Message message;
  if (!DecodeUntrusted(body, &message))
    return supervisor_.GiveUp("the engine sends messages that are none");
  std::visit([this, stage](const auto& each) { OnMessage(stage, each); }, message);
}

void EngineGenerator::OnMessage(size_t stage, const Progress& progress) {
  if (!stages_.OnProgress(stage, progress))
    return supervisor_.GiveUp("the engine loads what it has loaded");
  status_.state = EngineState::kLoading;
  status_.bytes_done = stages_.progress().done;
  status_.bytes = stages_.progress().of;
  Observe();
}

void EngineGenerator::OnMessage(size_t stage, const Ready& ready) {
  const GenerationOptions& wanted = options_.generation;
  if (!stages_.OnReady(stage, ready) || ready.blocks <= 0 ||
      ready.vocabulary != wanted.vocabulary || ready.context_max < wanted.batcher.context_max)
    return supervisor_.GiveUp(
        "the engine has loaded another model than it was told; is the file "
        "being written?");
  const std::optional<Ready> all = stages_.ready();
  if (!all.has_value()) return;
  status_.state = EngineState::kReady;
  status_.ready = *all;
  Observe();
  generation_.OnEngineReady(all->blocks, loop_.NowUs());
}

void EngineGenerator::OnMessage(size_t, const Failed& failed) { supervisor_.GiveUp(failed.why); }

void EngineGenerator::OnMessage(size_t stage, const Answer& answer) {
  if (stage + 1 < supervisor_.stages())
    return supervisor_.GiveUp("a stage answers that is not the last one");
  const absl::Status status = generation_.OnAnswerUntrusted(answer, loop_.NowUs());
  if (!status.ok()) return supervisor_.GiveUp(std::string(status.message()));
  ++status_.steps;
  status_.steps_us += static_cast<int64_t>(answer.step_us);
  supervisor_.OnEngineWorks();
  EndDrainIfEmpty();
}

void EngineGenerator::OnEngineLost(const std::string& why) {
  status_.state = EngineState::kLost;
  status_.why = why;
  ++status_.restarts;
  Observe();
  generation_.OnEngineLost(why, loop_.NowUs());
  EndDrainIfEmpty();
}

// --- effects of the generation -------------------------------------------------------------------

void EngineGenerator::SendPlan(const Plan& plan) { supervisor_.SendToAll(Encode(plan)); }

void EngineGenerator::SetTimer(int64_t at_us) {
  loop_.CancelTimer(timer_);
  timer_ = 0;
  if (at_us == scheduler::batching::kNever) return;
  timer_ = loop_.AddTimer(at_us, [this] {
    timer_ = 0;
    generation_.OnTimer(loop_.NowUs());
    EndDrainIfEmpty();
  });
}

}  // namespace serve::llm

// A Generator whose steps an engine in a process of its own computes: starts the engine, moves
// plans and answers, and goes on with another engine when one is lost. What is decided is in
// generation.h; here are the process, the clock and the timer.
//
// Requests are taken at any time: they wait while no engine is ready. Requests whose engine was
// lost go on from their tokens; clients see a pause of the back-off (at most 3 s) and of loading.
//
// Thread safety: the loop's thread alone. Ownership: loop and observer outlive the generator, whose
// end kills the engine and calls no listener.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "serve/engine/supervisor.h"
#include "serve/llm/generation/generation.h"
#include "serve/llm/generation/generator.h"
#include "serve/llm/generation/stage_states.h"
#include "serve/loop/event_loop.h"

namespace serve::llm {

struct EngineGeneratorOptions {
  std::vector<std::string> command;  // the program, and what makes it an engine
  // `rows_max` and `requests_max` are those of `generation.batcher`, `stage` is each stage's own.
  Load load;
  GenerationOptions generation;
};

enum class EngineState {
  kStarting,  // no word of the process yet
  kLoading,   // copies weights to the device
  kReady,
  kLost,  // the process has ended, or could not be started; another one will be
};

struct EngineStatus {
  EngineState state = EngineState::kStarting;
  std::string why;          // kLost: a sentence
  uint64_t bytes_done = 0;  // kLoading: of all stages
  uint64_t bytes = 0;
  Ready ready;              // kReady
  int64_t restarts = 0;     // engines that were lost
  int64_t steps = 0;        // that engines have answered
  int64_t steps_us = 0;     // for which engines computed them
  std::vector<pid_t> pids;  // of its stages; empty: there is no process
};

class EngineGenerator final : public Generator,
                              private engine::Supervisor::Client,
                              private Generation::Effects {
 public:
  // After each change of the status but `steps` and `steps_us`.
  using Observer = std::function<void(const EngineStatus&)>;

  EngineGenerator(EventLoop* loop, EngineGeneratorOptions options, Observer observer);
  ~EngineGenerator() override;
  EngineGenerator(const EngineGenerator&) = delete;
  EngineGenerator& operator=(const EngineGenerator&) = delete;

  // Starts the engine. Before it, requests wait.
  void Start() { supervisor_.Start(); }

  RequestId Submit(GenerationRequest request, GenerationListener* listener) override;
  void Cancel(RequestId request) override;

  // Calls `done` once, when no request is left: now, or after the last answer. The front refuses
  // new requests meanwhile.
  void Drain(std::function<void()> done);

  const EngineStatus& status() const { return status_; }
  // For metrics.
  const scheduler::batching::iteration::State& state() const { return generation_.state(); }
  const scheduler::batching::iteration::IterationBatcher& batcher() const {
    return generation_.batcher();
  }
  const history::History& history() const { return generation_.history(); }

 private:
  void OnEngineStarted() override;
  void OnFrameUntrusted(size_t stage, const engine::Bytes& body) override;
  void OnEngineLost(const std::string& why) override;
  void SendPlan(const Plan& plan) override;
  void SetTimer(int64_t at_us) override;

  void OnMessage(size_t stage, const Progress& progress);
  void OnMessage(size_t stage, const Ready& ready);
  void OnMessage(size_t stage, const Failed& failed);
  void OnMessage(size_t stage, const Answer& answer);
  template <typename Other>
  void OnMessage(size_t, const Other&) {
    supervisor_.GiveUp("the engine tells what only a front may");
  }
  void Observe();
  void EndDrainIfEmpty();

  EventLoop& loop_;
  const EngineGeneratorOptions options_;
  const Observer observer_;
  Generation generation_;
  EngineStatus status_;
  StageStates stages_;
  EventLoop::TimerId timer_ = 0;
  EventLoop::TimerId drain_timer_ = 0;
  std::function<void()> drained_;
  engine::Supervisor supervisor_;
};

}  // namespace serve::llm

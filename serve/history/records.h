// The records that a front keeps of one model for `laneway trace`: steps, requests, engines, load.
// Filled by History (history.h), and by the decoder of a front's answer (told_history.h).
//
// Times are microseconds of CLOCK_MONOTONIC, the clock of lanewayd's journal and of traced calls;
// 0 stands for what has not happened. Lists are in the order of time. Thread safety: values.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace serve::history {

struct StepRecord {
  uint64_t number = 0;
  int64_t begin_us = 0;     // the plan went to the engine
  int64_t end_us = 0;       // the answer came, or the engine was lost
  int64_t computed_us = 0;  // for which the engine computed it, by the engine's own word
  int32_t prompt_tokens = 0;
  int32_t decode_tokens = 0;
  int32_t answers = 0;      // that the step has rows of
  int32_t blocks = 0;       // of keys and values in use when the step began
  int32_t preemptions = 0;  // made to plan it
  bool lost = false;        // the engine was lost before it answered

  bool operator==(const StepRecord&) const = default;
};

struct LoadRecord {
  int64_t at_us = 0;
  int32_t running = 0;  // answers
  int32_t waiting = 0;  // requests
  int32_t blocks = 0;   // in use

  bool operator==(const LoadRecord&) const = default;
};

enum class Outcome : uint8_t {
  kOpen,  // goes on
  kStopped,
  kLength,
  kCancelled,
  kExpired,
  kEngineFault,
  kTooLongForEngine,
  kRefusedEmpty,
  kRefusedTooLong,
  kRefusedTooManyAnswers,
  kRefusedQueueFull,
};
constexpr int kOutcomes = 11;
constexpr bool IsRefusal(Outcome outcome) { return outcome >= Outcome::kRefusedEmpty; }

// A time for which an answer had no memory after it had begun.
struct PauseRecord {
  static constexpr int32_t kAllAnswers = -1;

  int64_t begin_us = 0;
  int64_t end_us = 0;        // a step has a row of the answer again, or the answer has ended
  bool engine_lost = false;  // else it was preempted
  int32_t answer = 0;        // of the request's; kAllAnswers: the engine was lost

  bool operator==(const PauseRecord&) const = default;
};

struct RequestRecord {
  uint64_t number = 0;  // the generator's
  std::string id;       // the client's
  uint32_t priority = 0;
  int32_t answers = 1;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt when it first began
  int64_t generated_tokens = 0;
  int64_t arrived_us = 0;
  int64_t begun_us = 0;  // the begin of the first step that has a row of it
  int64_t first_token_us = 0;
  int64_t ended_us = 0;
  Outcome outcome = Outcome::kOpen;  // of several answers: of the last one
  int64_t preemptions = 0;
  int64_t recomputations = 0;      // after the loss of an engine
  std::deque<PauseRecord> pauses;  // the latest

  bool operator==(const RequestRecord&) const = default;
};

struct EngineRecord {
  int64_t started_us = 0;
  int64_t ready_us = 0;
  int64_t lost_us = 0;
  int32_t blocks = 0;  // room for keys and values; once it was ready
  std::string why;     // it was lost

  bool operator==(const EngineRecord&) const = default;
};

struct Records {
  std::deque<StepRecord> steps;
  std::deque<LoadRecord> loads;
  std::deque<RequestRecord> requests;  // that have ended by their end; behind them those that go on
  std::deque<RequestRecord> refused;
  std::deque<EngineRecord> engines;

  bool operator==(const Records&) const = default;
};

// How much is kept of one model. 16,384 steps are as many as events in lanewayd's journal: at 10 ms
// a step nearly three minutes, in 1 MiB. The command reads answers of up to 16 MiB, which is more
// than all of it.
constexpr size_t kStepsMax = 16'384;
constexpr size_t kLoadsMax = 16'384;
constexpr size_t kRequestsMax = 4'096;  // that have ended
constexpr size_t kOpenToldMax = 1'024;  // the oldest of those that go on
constexpr size_t kRefusedMax = 1'024;
constexpr size_t kEnginesMax = 256;
constexpr size_t kPausesMax = 16;  // of one request

}  // namespace serve::history

// Records of sessions: journal, history, verdicts on replay, live figures and the latest faults.
//
// Nothing here decides anything. Other parts report each event once, and people's commands read the
// records. While sessions run, the counters in the sessions' pages are read every kSampleUs.
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "daemon/common/event_loop.h"
#include "daemon/control/device_use.h"
#include "daemon/control/history.h"
#include "daemon/control/iteration_sampler.h"
#include "daemon/control/journal.h"
#include "daemon/control/session_table.h"
#include "daemon/control/session_verdicts.h"
#include "scheduler/state.h"

namespace control {

struct Fault {
  uint64_t session_id = 0;  // 0: no session's
  uint64_t job_id = 0;
  std::string program;
  uint32_t code = 0;  // CUresult
  std::string text;
};

// The clocks of this machine.
Now ReadClocks();

class Observers {
 public:
  static constexpr int64_t kSampleUs = 500'000;  // between two readings of the sessions' counters
  static constexpr size_t kFaultsMax = 16;       // the oldest fault makes room

  struct Sources {
    common::EventLoop* loop;
    const SessionTable* sessions;
    const scheduler::State* state;
  };

  // `state_dir` empty: history and verdicts are kept in memory alone. The sources outlive this
  // object.
  Observers(const std::string& state_dir, const Sources& sources,
            std::function<Now()> clock = ReadClocks);
  ~Observers();
  Observers(const Observers&) = delete;

  // --- sessions
  void Begin(const Session& session);
  void End(const Session& session);

  // Adds an event to the journal. An event without a time gets the present one.
  void Note(Event event, std::string_view text = {});
  void AddFault(Fault fault);

  // An event is about to be decided: until now the scheduler's state was what it is.
  void PassTime() { use_.Pass(*sources_.state, clock_().us); }
  // Reads the counters of every session now.
  void Sample();
  // lanewayd ends. `programs_end`: the programs that run end with it.
  void Close(bool programs_end);

  // --- runs of `laneway run`
  void Launched(uint64_t run, const std::string& command, ipc::UniqueFd run_pidfd);
  void Exited(uint64_t run, int code);

  const History& history() const { return history_; }
  const SessionVerdicts& verdicts() const { return verdicts_; }
  const Journal& journal() const { return journal_; }
  const IterationSampler& sampler() const { return sampler_; }
  const DeviceUse& use() const { return use_; }
  const std::deque<Fault>& faults() const { return faults_; }  // newest last
  uint64_t faults_seen() const { return faults_seen_; }        // since lanewayd began

 private:
  void SampleOne(const Session& session);
  void SampleAgain();

  const Sources sources_;
  const std::function<Now()> clock_;
  History history_;
  SessionVerdicts verdicts_;
  Journal journal_;
  IterationSampler sampler_;
  DeviceUse use_;
  std::deque<Fault> faults_;
  uint64_t faults_seen_ = 0;
  common::EventLoop::TimerId sample_timer_ = 0;
};

}  // namespace control

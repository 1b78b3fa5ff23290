// Traces of calls for `laneway trace JOB --calls` (ipc/call_trace.h): switches them on and off, and
// hands the events of all tracks to the command, which asks again and again.
//
//     {"command":"trace","id":JOB,"text":"begin","value":DETAILS} -> {"ok","trace":NUMBER}
//     {"command":"trace","id":JOB,"text":"more","value":NUMBER} -> {"ok","whole","live",
//                                                                  "sessions":[...]}
//     {"command":"trace","id":JOB,"text":"end","value":NUMBER}  -> the same; the trace ends
//
// DETAILS: 1 for records of work as well (ipc/work_records.h). A session of the answer has
// "session", "program", "threads" (that asked for a track) and "tracks": of each "track", "thread",
// "lost", and "events", the bytes of ipc::TraceEvents in base64. They are the client's word, and
// not looked at here. "whole": nothing was left for the next answer. "live": how many sessions of
// the job go on. An ended trace can be asked for what is left.
//
// A trace whose command stays silent for kSilenceUs ends; its sessions notice by themselves. One
// command at a time traces a job. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/command.h"
#include "daemon/control/session_table.h"

namespace control {

class TracedSession;

class CallTraces {
 public:
  static constexpr int64_t kSilenceUs = 2'000'000;

  struct Parts {
    SessionTable* sessions;
    common::EventLoop* loop;
    std::function<int64_t()> now_us;  // CLOCK_MONOTONIC, as clients and workers read it
  };
  // The parts outlive this object.
  explicit CallTraces(Parts parts);
  ~CallTraces();
  CallTraces(const CallTraces&) = delete;

  // The answer to the command.
  std::string Do(const Command& command);

 private:
  struct Trace {
    uint32_t number = 0;
    int64_t until_us = 0;
    bool details = false;
    bool ended = false;
    std::map<uint64_t, std::unique_ptr<TracedSession>> sessions;  // by session
  };

  std::string Begin(uint64_t job, bool details);
  std::string More(uint64_t job, Trace* trace);
  // Sessions of the job that came since. The error is a sentence; empty: none.
  std::string Enroll(uint64_t job, Trace* trace);
  static void Switch(const Trace& trace, TracedSession* session);
  void End(Trace* trace);
  size_t CountLive(uint64_t job) const;
  // Drops traces whose commands are silent, from now on as long as there are traces.
  void LookLater();

  const Parts parts_;
  uint32_t last_number_ = 0;
  std::map<uint64_t, Trace> traces_;  // by job
  std::optional<common::EventLoop::TimerId> timer_;
};

}  // namespace control

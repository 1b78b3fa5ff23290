// Events of clients, workers and devices during `laneway trace JOB --calls`: the events that
// lanewayd hands on (daemon/control/call_traces.h), checked, and as events of the trace format.
//
// The bytes are the traced program's word, and each event is checked before it is kept. Pure.
// Thread safety: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/timeline.h"
#include "ipc/call_trace.h"

namespace cli {

struct CallTrack {
  uint32_t thread = 0;  // as the system numbers threads
  uint64_t lost = 0;    // events that found no room
  std::vector<ipc::TraceEvent> events;
  std::string records_untrusted;  // of tracks that hold them, to be read (cli/graph/records.h)
};

struct SessionCalls {
  std::string program;
  uint32_t threads = 0;                               // of the client that had something to write
  std::map<uint32_t, std::string> kernels_untrusted;  // names, by number
  std::map<uint32_t, CallTrack> tracks;               // by number (ipc/call_trace.h)
};

struct JobCalls {
  uint64_t job = 0;
  // From when to when the job was traced, CLOCK_MONOTONIC.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::map<uint64_t, SessionCalls> sessions;
  uint64_t unreadable = 0;  // events that make no sense
};

struct CallsAnswer {
  bool whole = false;  // nothing was left for the next answer
  size_t live = 0;     // sessions that go on
};

// Adds what one answer of lanewayd holds. False: it is no such answer.
bool TakeCallsUntrusted(const std::string& answer_json, CallsAnswer* answer, JobCalls* calls);

// Appends the events that make sense on this track. Returns how many do not.
uint64_t DecodeEventsUntrusted(uint32_t track, std::string_view bytes,
                               std::vector<ipc::TraceEvent>* events);

// Reads the names of kernels out of the records that all answers brought. REQUIRES: the trace is
// not in detail.
void NameKernels(JobCalls* calls);

// Sorts each track, cuts what lies outside of the time of the trace, and makes the slices of each
// track nest.
void Order(JobCalls* calls);

// Leaves of the timeline what was in the time of the trace. What goes on at the timeline's end goes
// on until the end of the trace.
void Cut(const JobCalls& calls, JobTimeline* timeline);

// Events lost for lack of room, and threads that found no track.
struct CallLosses {
  uint64_t events = 0;
  uint64_t threads = 0;
};
CallLosses LossesOf(const JobCalls& calls);

}  // namespace cli

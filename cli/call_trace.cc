#include "cli/call_trace.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/call_events.h"
#include "cli/call_events_json.h"
#include "cli/fronts.h"
#include "cli/models_trace.h"
#include "cli/timeline.h"
#include "cli/trace.h"
#include "cli/trace_json.h"
#include "cli/trace_link.h"
#include "ipc/futex.h"
#include "ipc/job_options.h"

namespace cli {
namespace {

constexpr uint64_t kDefaultUs = 2'000'000;

absl::Status Collect(TraceLink* link, int64_t for_us, JobCalls* calls) {
  CallsAnswer answer{.whole = true, .live = 1};
  while (answer.live != 0 && ipc::MonotonicNs() < calls->begin_ns + for_us * 1000) {
    if (answer.whole) poll(nullptr, 0, TraceLink::kBetweenAnswersMs);
    if (const absl::Status taken = link->Take("more", &answer, calls); !taken.ok()) return taken;
  }
  calls->end_ns = ipc::MonotonicNs();
  do {
    if (const absl::Status taken = link->Take("end", &answer, calls); !taken.ok()) return taken;
  } while (!answer.whole);
  return absl::OkStatus();
}

void TellLosses(const JobCalls& calls) {
  const CallLosses losses = LossesOf(calls);
  if (losses.events != 0) {
    (void)Say(0, absl::StrCat(losses.events,
                              " events found no room and are not in the trace; trace for a shorter "
                              "time, or when the machine has less to do"));
  }
  if (losses.threads != 0) {
    (void)Say(0, absl::StrCat(losses.threads, " threads of the job are not in the trace: ",
                              ipc::kClientThreadsMax, " of a program have room"));
  }
  if (calls.unreadable != 0) {
    (void)Say(0, absl::StrCat(calls.unreadable, " events made no sense and are left out"));
  }
}

}  // namespace

int TraceCalls(const Request& request) {
  if (request.id == 0) return Say(2, "--calls traces one job: give its number (laneway ps)");
  const std::optional<uint64_t> for_us =
      request.watched.period.empty() ? kDefaultUs : ipc::ParseDurationUs(request.watched.period);
  if (!for_us.has_value() || *for_us == 0)
    return Say(
        2, absl::StrCat("--for takes a time such as 2s or 500ms, not ", request.watched.period));
  TraceLink link(request, false);
  JobCalls calls{.job = request.id, .begin_ns = ipc::MonotonicNs()};
  if (const absl::Status begun = link.Begin(); !begun.ok())
    return Say(1, std::string(begun.message()));
  if (const absl::Status taken = Collect(&link, static_cast<int64_t>(*for_us), &calls); !taken.ok())
    return Say(1, std::string(taken.message()));
  const absl::StatusOr<std::vector<JournalEvent>> journal = FetchJournal(request);
  if (!journal.ok()) return Say(1, std::string(journal.status().message()));
  NameKernels(&calls);
  Order(&calls);
  TellLosses(calls);
  JobTimeline timeline = BuildTimeline(*journal, request.id);
  Cut(calls, &timeline);
  std::string events = CallsJson(calls, timeline.begin_us * 1000);
  const std::string models =
      ModelsTraceJson(AskForHistories(DirOf(request), request.id),
                      {timeline.begin_us, timeline.end_us}, timeline.begin_us);
  absl::StrAppend(&events, events.empty() || models.empty() ? "" : ",\n", models);
  const absl::Status written = WriteText(request.out, TraceJson(timeline, events) + "\n");
  return written.ok() ? 0 : Say(1, std::string(written.message()));
}

}  // namespace cli

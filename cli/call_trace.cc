#include "cli/call_trace.h"

#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/call_events.h"
#include "cli/call_events_json.h"
#include "cli/timeline.h"
#include "cli/trace.h"
#include "cli/trace_json.h"
#include "ipc/futex.h"
#include "ipc/job_options.h"

namespace cli {
namespace {

constexpr int kBetweenAnswersMs = 10;  // a busy thread's track holds the events of far longer
constexpr uint64_t kDefaultUs = 2'000'000;

// A question about the trace of the job, and its answer.
class TraceLink {
 public:
  explicit TraceLink(const Request& request) : request_(request) {}

  absl::Status Begin() {
    const absl::StatusOr<std::string> answer = Ask("begin");
    if (!answer.ok()) return answer.status();
    const nlohmann::json json = nlohmann::json::parse(*answer, nullptr, false);
    if (!json.is_object()) return absl::InternalError("the daemon's answer is no trace");
    number_ = json.value("trace", uint64_t{0});
    return absl::OkStatus();
  }

  absl::Status Take(const char* what, CallsAnswer* answer, JobCalls* calls) {
    const absl::StatusOr<std::string> text = Ask(what);
    if (!text.ok()) return text.status();
    return TakeCallsUntrusted(*text, answer, calls)
               ? absl::OkStatus()
               : absl::InternalError("the daemon's answer is no trace");
  }

 private:
  absl::StatusOr<std::string> Ask(const char* what) {
    const nlohmann::json ask = {
        {"command", "trace"}, {"id", request_.id}, {"text", what}, {"value", number_}};
    return AskDaemon(request_, ask.dump());
  }

  const Request& request_;
  uint64_t number_ = 0;
};

absl::Status Collect(TraceLink* link, int64_t for_us, JobCalls* calls) {
  CallsAnswer answer{.whole = true, .live = 1};
  while (answer.live != 0 && ipc::MonotonicNs() < calls->begin_ns + for_us * 1000) {
    if (answer.whole) poll(nullptr, 0, kBetweenAnswersMs);
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
      request.period.empty() ? kDefaultUs : ipc::ParseDurationUs(request.period);
  if (!for_us.has_value() || *for_us == 0)
    return Say(2, absl::StrCat("--for takes a time such as 2s or 500ms, not ", request.period));
  TraceLink link(request);
  JobCalls calls{.job = request.id, .begin_ns = ipc::MonotonicNs()};
  if (const absl::Status begun = link.Begin(); !begun.ok())
    return Say(1, std::string(begun.message()));
  if (const absl::Status taken = Collect(&link, static_cast<int64_t>(*for_us), &calls); !taken.ok())
    return Say(1, std::string(taken.message()));
  const absl::StatusOr<std::vector<JournalEvent>> journal = FetchJournal(request);
  if (!journal.ok()) return Say(1, std::string(journal.status().message()));
  Order(&calls);
  TellLosses(calls);
  JobTimeline timeline = BuildTimeline(*journal, request.id);
  Cut(calls, &timeline);
  const std::string events = CallsJson(calls, timeline.begin_us * 1000);
  const absl::Status written = WriteText(request.out, TraceJson(timeline, events) + "\n");
  return written.ok() ? 0 : Say(1, std::string(written.message()));
}

}  // namespace cli

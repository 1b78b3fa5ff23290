#include "cli/job_work.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/call_events.h"
#include "cli/graph/iteration.h"
#include "cli/trace_link.h"
#include "ipc/futex.h"

namespace cli {
namespace {

// More records than any iteration has that can be drawn.
constexpr size_t kRecordsMax = 4u << 15;
// For device times and images, once an iteration is whole.
constexpr int64_t kAfterwardsNs = 2'000'000'000;

// The records, times and images of one session so far.
struct SessionWork {
  std::string program;
  std::string sent;   // the beginning of a record
  std::string parts;  // the same of an image's part
  std::vector<graph::Record> records;
  std::map<uint32_t, int64_t> times_ns;
  graph::Images images;
  graph::LaunchCounts launches;
  std::vector<graph::Record> iteration;  // once it is whole
};

class JobWork {
 public:
  explicit JobWork(const Request& request) : link_(request, true) { calls_.job = request.id; }

  absl::Status Begin() { return link_.Begin(); }
  // False: no session of the job is left, and all was told.
  absl::StatusOr<bool> More() { return Take("more"); }
  // Stops the trace; sessions keep what they have told so far.
  absl::Status End() { return Take("end").status(); }

  std::map<uint64_t, SessionWork>& sessions() { return sessions_; }

 private:
  absl::StatusOr<bool> Take(const char* what) {
    if (answer_.whole) poll(nullptr, 0, TraceLink::kBetweenAnswersMs);
    if (const absl::Status taken = link_.Take(what, &answer_, &calls_); !taken.ok()) return taken;
    for (auto& [id, told] : calls_.sessions) {
      SessionWork& session = sessions_[id];
      session.program = told.program;
      for (auto& [number, track] : told.tracks) Sort(number, &track, &session);
    }
    return answer_.live != 0 || !answer_.whole;
  }

  void Sort(uint32_t number, CallTrack* track, SessionWork* session) {
    const std::string bytes = std::exchange(track->records_untrusted, {});
    if (number == ipc::kSentTrack) {
      session->sent += bytes;
      const size_t before = session->records.size();
      session->sent.erase(
          0, graph::DecodeRecordsUntrusted(session->sent, &session->records, &calls_.unreadable));
      for (size_t i = before; i < session->records.size(); ++i)
        session->launches.Add(session->records[i]);
      TakeIteration(session);
    } else if (number == ipc::kImageTrack) {
      session->parts += bytes;
      session->parts.erase(
          0, graph::DecodeImagesUntrusted(session->parts, &session->images, &calls_.unreadable));
    } else if (number == ipc::kDeviceTrack) {
      for (const ipc::TraceEvent& event : track->events) {
        const uint32_t record = ipc::DeviceWorkIn(event).record;
        const int64_t time_ns = event.end_ns - event.begin_ns;
        session->times_ns[record] = time_ns;
        if (session->times_ns.size() > kRecordsMax)
          session->times_ns.erase(session->times_ns.begin());
        session->launches.AddTime(record, time_ns);
      }
    }
    track->events.clear();
  }

  static void TakeIteration(SessionWork* session) {
    if (!session->iteration.empty()) return session->records.clear();
    const std::span<const graph::Record> whole = graph::FirstWholeIteration(session->records);
    session->iteration.assign(whole.begin(), whole.end());
    if (session->records.size() > kRecordsMax) {
      const ptrdiff_t old = static_cast<ptrdiff_t>(session->records.size() / 2);
      session->records.erase(session->records.begin(), session->records.begin() + old);
    }
  }

  TraceLink link_;
  JobCalls calls_;
  CallsAnswer answer_{.whole = true, .live = 1};
  std::map<uint64_t, SessionWork> sessions_;
};

// True when the session's iteration has all its device times and the images of its kernels.
bool IsComplete(const SessionWork& session) {
  return std::all_of(
      session.iteration.begin(), session.iteration.end(), [&session](const graph::Record& record) {
        const graph::SentCall* const call = std::get_if<graph::SentCall>(&record.what);
        if (call == nullptr || call->op != ipc::Op::Launch) return true;
        const auto image = session.images.find(call->image);
        return session.times_ns.contains(record.number) && image != session.images.end() &&
               image->second.complete;
      });
}

// The session whose iteration is whole, if there is one.
std::map<uint64_t, SessionWork>::iterator WholeOf(std::map<uint64_t, SessionWork>* sessions) {
  return std::find_if(sessions->begin(), sessions->end(),
                      [](const auto& entry) { return !entry.second.iteration.empty(); });
}

bool AllTold(const std::map<uint64_t, SessionWork>& sessions) {
  return !sessions.empty() && std::all_of(sessions.begin(), sessions.end(), [](const auto& entry) {
    return entry.second.images.contains(graph::kAllTold);
  });
}

std::string SecondsOf(int64_t us) { return absl::StrCat(static_cast<double>(us) / 1e6, " s"); }

}  // namespace

absl::StatusOr<TracedIteration> TraceIteration(const Request& request, int64_t for_us) {
  JobWork work(request);
  if (const absl::Status begun = work.Begin(); !begun.ok()) return begun;
  const int64_t end_ns = ipc::MonotonicNs() + for_us * 1000;
  int64_t whole_ns = 0;  // since when there is one
  bool lives = true;
  while (lives) {
    const absl::StatusOr<bool> more = work.More();
    if (!more.ok()) return more.status();
    lives = *more;
    const auto whole = WholeOf(&work.sessions());
    const int64_t now_ns = ipc::MonotonicNs();
    if (whole == work.sessions().end()) {
      if (now_ns >= end_ns) break;
    } else {
      if (whole_ns == 0) whole_ns = now_ns;
      if (IsComplete(whole->second) || now_ns - whole_ns > kAfterwardsNs) break;
    }
  }
  if (lives) (void)work.End();
  const auto whole = WholeOf(&work.sessions());
  if (whole == work.sessions().end()) {
    return absl::NotFoundError(
        lives ? absl::StrCat(
                    "job ", request.id, " came to no whole iteration within ", SecondsOf(for_us),
                    "; --for TIME waits longer, and docs/iterations.md says how iterations "
                    "are found")
              : absl::StrCat("job ", request.id, " ended before an iteration of it was whole"));
  }
  SessionWork& session = whole->second;
  return TracedIteration{.session = whole->first,
                         .program = std::move(session.program),
                         .records = std::move(session.iteration),
                         .times_ns = std::move(session.times_ns),
                         .images = std::move(session.images)};
}

absl::StatusOr<JobKernels> FetchKernels(const Request& request, int64_t images_us,
                                        int64_t count_us) {
  JobWork work(request);
  if (const absl::Status begun = work.Begin(); !begun.ok()) return begun;
  const int64_t begin_ns = ipc::MonotonicNs(), counted_ns = begin_ns + count_us * 1000;
  const int64_t end_ns = std::max(begin_ns + images_us * 1000, counted_ns);
  bool lives = true, all = false;
  while (lives && ipc::MonotonicNs() < (all ? counted_ns : end_ns)) {
    const absl::StatusOr<bool> more = work.More();
    if (!more.ok()) return more.status();
    lives = *more;
    all = AllTold(work.sessions());
  }
  JobKernels kernels{.counted_ns = ipc::MonotonicNs() - begin_ns};
  if (lives) (void)work.End();
  for (auto& [id, session] : work.sessions()) {
    kernels.images.merge(session.images);
    for (const auto& [kernel, launches] : session.launches.by_kernel())
      kernels.launches[kernel].Add(launches);
  }
  kernels.images.erase(graph::kAllTold);
  if (all || !kernels.images.empty()) return kernels;
  return absl::NotFoundError(
      lives ? absl::StrCat("job ", request.id, " told of no module within ", SecondsOf(images_us),
                           "; laneway why ", request.id, " says what it waits for")
            : absl::StrCat("job ", request.id, " ended before it told of its modules"));
}

}  // namespace cli

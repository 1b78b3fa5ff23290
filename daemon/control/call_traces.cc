#include "daemon/control/call_traces.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/control/job_commands.h"
#include "daemon/control/status.h"
#include "ipc/call_trace.h"
#include "ipc/session_file.h"
#include "ipc/trace_switch.h"

namespace control {
namespace {

using Json = nlohmann::ordered_json;

// Of one answer: in base64 they stay within ipc::kControlTextBytesMax.
constexpr size_t kEventsPerAnswer = 16'000;

}  // namespace

// The trace area of a session's file. It stays mapped when the session ends, so that its last
// events can be read.
class TracedSession {
 public:
  TracedSession(const Session& session, std::byte* area, uint32_t number)
      : program_(session.record.program),
        number_(number),
        page_(session.fds.file.get()),
        fd_(fcntl(session.fds.file.get(), F_DUPFD_CLOEXEC, 0)),
        area_(area) {
    for (uint32_t track = 0; track < ipc::kTraceTracks; ++track) readers_.emplace_back(area, track);
  }
  ~TracedSession() {
    Switch(0, 0, false);
    munmap(area_, ipc::kTraceAreaBytes);
    // The memory goes, the positions stay: a writer may be about to write its last event.
    (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    ipc::kTraceOffset + ipc::kTraceWordsBytes,
                    ipc::kTraceAreaBytes - ipc::kTraceWordsBytes);
  }
  TracedSession(const TracedSession&) = delete;

  void Switch(uint32_t number, int64_t until_us, bool details) {
    ipc::TraceSwitch* const trace = ipc::TraceSwitchOf(page_.get());
    trace->details.store(details ? 1 : 0, std::memory_order_relaxed);
    trace->until_ns.store(until_us * 1000, std::memory_order_relaxed);
    trace->number.store(number, std::memory_order_relaxed);
  }

  // Takes up to `*room` events, and lowers it by as many.
  Json Take(size_t* room) {
    Json tracks = Json::array();
    for (uint32_t track = 0; track < ipc::kTraceTracks; ++track) {
      std::vector<std::byte> bytes;
      readers_[track].TakeUntrusted(*room, &bytes);
      *room -= bytes.size() / sizeof(ipc::TraceEvent);
      if (bytes.empty() && readers_[track].lost_untrusted() == 0) continue;
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      tracks.push_back({{"track", track},
                        {"thread", readers_[track].thread_untrusted()},
                        {"lost", readers_[track].lost_untrusted()},
                        {"events", absl::Base64Escape({text.data(), text.size()})}});
    }
    return {{"program", program_},
            {"threads", ipc::ThreadsUntrusted(area_, number_)},
            {"tracks", std::move(tracks)}};
  }

 private:
  const std::string program_;
  const uint32_t number_;
  // A mapping of its own: the session's goes when its program ends.
  common::SessionPageMap page_;
  const ipc::UniqueFd fd_;
  std::byte* const area_;
  std::vector<ipc::TraceReader> readers_;
};

namespace {

bool CanBeTraced(const Session& session) {
  return session.phase != Phase::kEnding && session.phase != Phase::kLost;
}

// Memory for the area is taken now: without it a program would fault where it writes. Null: there
// is none.
std::byte* MapTraceArea(int fd) {
  if (posix_fallocate(fd, ipc::kTraceOffset, ipc::kTraceAreaBytes) != 0) return nullptr;
  void* const area = mmap(nullptr, ipc::kTraceAreaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                          ipc::kTraceOffset);
  return area == MAP_FAILED ? nullptr : static_cast<std::byte*>(area);
}

}  // namespace

CallTraces::CallTraces(Parts parts) : parts_(std::move(parts)) {}
CallTraces::~CallTraces() {
  if (timer_.has_value()) parts_.loop->Cancel(*timer_);
}

std::string CallTraces::Do(const Command& command) {
  if (command.text == "begin") return Begin(command.id, command.value != 0);
  const std::map<uint64_t, Trace>::iterator found = traces_.find(command.id);
  if (found == traces_.end() || found->second.number != command.value) {
    return ErrorJson(absl::StrCat("the trace of job ", command.id,
                                  " has ended; laneway trace begins another one"));
  }
  if (command.text == "end") End(&found->second);
  return More(command.id, &found->second);
}

// A trace that has ended may still be asked for what is left, until another one begins.
std::string CallTraces::Begin(uint64_t job, bool details) {
  const std::map<uint64_t, Trace>::iterator found = traces_.find(job);
  if (found != traces_.end() && !found->second.ended) {
    return ErrorJson(absl::StrCat("another command traces job ", job, "; wait until it ends"));
  }
  Trace trace{.number = ++last_number_, .details = details};
  traces_.erase(job);  // the last one: its end switches its sessions off
  const std::string refusal = Enroll(job, &trace);
  if (!refusal.empty()) return ErrorJson(refusal);
  if (trace.sessions.empty()) {
    return ErrorJson(CountLive(job) == 0
                         ? NoSuchJob(job)
                         : absl::StrCat("job ", job, " is not let in yet; trace it when it runs"));
  }
  trace.until_us = parts_.now_us() + kSilenceUs;
  for (const auto& entry : trace.sessions) Switch(trace, entry.second.get());
  traces_[job] = std::move(trace);
  if (!timer_.has_value()) LookLater();
  return DumpJson({{"ok", true}, {"trace", last_number_}});
}

std::string CallTraces::Enroll(uint64_t job, Trace* trace) {
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const Session& session = entry.second;
    if (session.record.job.number != job || trace->sessions.count(entry.first) != 0) continue;
    if (!CanBeTraced(session)) continue;
    if (!session.fds.file.valid() || session.page.get() == nullptr) continue;
    if (session.worker == 0 && session.phase == Phase::kRunning) {
      return absl::StrCat("job ", job,
                          " is in-process: its calls go to the driver without Laneway; leave out "
                          "--calls for the timeline of its lanes");
    }
    std::byte* const area = MapTraceArea(session.fds.file.get());
    if (area == nullptr) {
      return absl::StrCat("no room for the trace of job ", job, ": ", std::strerror(errno),
                          "; free shared memory (df /dev/shm)");
    }
    trace->sessions.emplace(entry.first,
                            std::make_unique<TracedSession>(session, area, trace->number));
  }
  return "";
}

std::string CallTraces::More(uint64_t job, Trace* trace) {
  trace->until_us = parts_.now_us() + kSilenceUs;
  if (!trace->ended) {
    // A session that cannot be traced does not end the trace of the others.
    (void)Enroll(job, trace);
    for (const auto& entry : trace->sessions) Switch(*trace, entry.second.get());
  }
  size_t room = kEventsPerAnswer;
  Json sessions = Json::array();
  for (const auto& entry : trace->sessions) {
    Json session = entry.second->Take(&room);
    session["session"] = entry.first;
    sessions.push_back(std::move(session));
  }
  return DumpJson({{"ok", true},
                   {"whole", room != 0},
                   {"live", CountLive(job)},
                   {"sessions", std::move(sessions)}});
}

size_t CallTraces::CountLive(uint64_t job) const {
  size_t live = 0;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all())
    live += entry.second.record.job.number == job && CanBeTraced(entry.second);
  return live;
}

void CallTraces::Switch(const Trace& trace, TracedSession* session) {
  session->Switch(trace.number, trace.until_us, trace.details);
}

void CallTraces::End(Trace* trace) {
  trace->ended = true;
  for (const auto& entry : trace->sessions) entry.second->Switch(0, 0, false);
}

void CallTraces::LookLater() {
  timer_ = parts_.loop->After(kSilenceUs, [this] {
    timer_.reset();
    std::erase_if(traces_, [now_us = parts_.now_us()](const auto& entry) {
      return entry.second.until_us <= now_us;
    });
    if (!traces_.empty()) LookLater();
  });
}

}  // namespace control

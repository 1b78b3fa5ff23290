#include "cli/trace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/call_trace.h"
#include "cli/fronts.h"
#include "cli/models_trace.h"
#include "cli/trace_json.h"

namespace cli {

absl::StatusOr<std::vector<JournalEvent>> FetchJournal(const Request& request) {
  std::vector<JournalEvent> events;
  uint64_t goal = 0;  // what there was when we began: it goes on growing
  for (uint64_t after = 0;;) {
    const nlohmann::json ask = {{"command", "journal"}, {"after", after}};
    const absl::StatusOr<std::string> reply = AskDaemon(request, ask.dump());
    if (!reply.ok()) return reply.status();
    const int64_t last = TakeEvents(*reply, after, &events);
    if (last < 0) return absl::InternalError("the daemon's answer is no journal");
    if (goal == 0) goal = nlohmann::json::parse(*reply).value("last", uint64_t{0});
    if (static_cast<uint64_t>(last) == after || static_cast<uint64_t>(last) >= goal) return events;
    after = static_cast<uint64_t>(last);
  }
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::FILE* const file = path.empty() ? stdout : std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = (path.empty() ? std::fflush(file) : std::fclose(file)) == 0;
  if (written && closed) return absl::OkStatus();
  const int failure = errno;
  // Half a file helps nobody; a pipe or a device is not ours to remove.
  struct stat info;
  if (!path.empty() && stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
    unlink(path.c_str());
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot write ", path.empty() ? "standard output" : path, ": ", std::strerror(failure)));
}

// Servers of models go on without lanewayd, and their engines may be on a bare device: then the
// trace has their models alone.
int Trace(const Request& request) {
  if (request.watched.calls) return TraceCalls(request);
  const absl::StatusOr<std::vector<JournalEvent>> events = FetchJournal(request);
  const std::vector<serve::history::ToldHistory> models =
      AskForHistories(DirOf(request), request.id);
  if (!events.ok() && models.empty()) return Say(1, std::string(events.status().message()));
  if (!events.ok())
    (void)Say(0, absl::StrCat("the trace has served models alone: ", events.status().message()));
  JobTimeline timeline;
  if (events.ok()) timeline = BuildTimeline(*events, request.id);
  if (request.id != 0 && timeline.sessions.empty() && models.empty()) {
    return Say(1, absl::StrCat("the journal knows no job ", request.id,
                               "; laneway ps lists those that run"));
  }
  std::string more;
  if (!models.empty()) {
    const TraceSpan window = WindowOf(models);
    const bool is_empty = timeline.end_us == 0;
    timeline.begin_us = is_empty ? window.begin_us : std::min(timeline.begin_us, window.begin_us);
    more = ModelsTraceJson(models, window, timeline.begin_us);
  }
  const absl::Status written = WriteText(request.out, TraceJson(timeline, more) + "\n");
  return written.ok() ? 0 : Say(1, std::string(written.message()));
}

}  // namespace cli

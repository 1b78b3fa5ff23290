#include "daemon/control/history.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/socket.h"
#include "ipc/state_dir.h"

namespace control {
namespace {

constexpr char kLearnedName[] = "learned.jsonl";
constexpr uint64_t kMeanOfMin = 3;  // iterations, before a mean says anything
constexpr size_t kArgumentsMax = 4096;
constexpr uint64_t kReadingMax = uint64_t{1} << 50;

std::string ExecutableOf(pid_t pid) {
  char path[4096];
  const ssize_t length = readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

// With a zero after each.
std::string ArgumentsOf(pid_t pid) {
  const ipc::UniqueFd file(
      open(absl::StrCat("/proc/", pid, "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(kArgumentsMax, '\0');
  const ssize_t length = file.valid() ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return text;
}

std::string ForPeople(std::string arguments) {
  while (!arguments.empty() && arguments.back() == '\0') arguments.pop_back();
  std::replace(arguments.begin(), arguments.end(), '\0', ' ');
  return arguments;
}

uint64_t Grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

History::History(std::string state_dir) : dir_(std::move(state_dir)) {
  if (dir_.empty()) return;
  const std::string path = absl::StrCat(dir_, "/", kLearnedName);
  const absl::StatusOr<std::string> text = ipc::ReadBounded(path, CommandProfiles::kFileBytesMax);
  if (absl::IsNotFound(text.status())) return;
  if (!text.ok()) {
    spdlog::warn("{}; nothing is known of commands that ran before",
                 std::string(text.status().message()));
    return;
  }
  const size_t skipped = profiles_.MergeUntrusted(*text);
  if (skipped != 0) spdlog::warn("{}: {} line(s) are not ours and are skipped", path, skipped);
}

// --- jobs ----------------------------------------------------------------------------------------

void History::Launched(uint64_t job, const std::string& command, ipc::UniqueFd run_pidfd) {
  OpenJob& open = jobs_[job];
  open.record.job = job;
  open.record.command = command;
  open.launched = true;
  open.run_pidfd = std::move(run_pidfd);
}

void History::Exited(uint64_t job, int code, const Now& now) {
  const std::map<uint64_t, OpenJob>::iterator found = jobs_.find(job);
  if (found == jobs_.end()) return;
  found->second.record.exit = code;
  found->second.run_over = true;
  CloseIfOver(job, now);
}

bool History::HasPrograms() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const std::pair<const uint64_t, OpenJob>& job) {
    const OpenJob& open = job.second;
    return open.launched && !open.run_over && open.run_pidfd.valid() &&
           !ipc::ProcessEnded(open.run_pidfd.get());
  });
}

bool History::IsOver(const OpenJob& job) const {
  return job.open == 0 && (!job.launched || job.run_over);
}

void History::CloseIfOver(uint64_t job, const Now& now) {
  const std::map<uint64_t, OpenJob>::iterator found = jobs_.find(job);
  if (found == jobs_.end() || !IsOver(found->second)) return;
  Close(&found->second, now);
  jobs_.erase(found);
}

void History::Close(OpenJob* job, const Now& now) {
  ipc::HistoryRecord& record = job->record;
  if (record.sessions == 0) return;  // it never used the device
  record.ran_us = static_cast<uint64_t>(job->end_us - job->begin_us);
  record.p50_us = QuantileUs(job->times, 0.5);
  record.p99_us = QuantileUs(job->times, 0.99);
  // Only runs that came to their end make profiles.
  if (record.note.empty() && (record.exit == 0 || record.exit == ipc::kExitUnknown)) {
    for (const OpenSession& session : job->ended) LearnFrom(session, now);
  }
  if (dir_.empty()) return;
  const std::string path = absl::StrCat(dir_, "/", ipc::kHistoryName);
  Log(path, ipc::AppendLine(path, ipc::HistoryLine(record), ipc::kHistoryBytesMax));
}

void History::CloseAll(bool programs_end, const Now& now) {
  std::vector<uint64_t> open;
  for (const std::pair<const uint64_t, OpenSession>& entry : sessions_) {
    open.push_back(entry.first);
  }
  if (programs_end) {
    for (const uint64_t id : open) End(id, {}, "Laneway was stopped while it ran", now);
  }
  for (std::pair<const uint64_t, OpenJob>& entry : jobs_) {
    if (entry.second.open == 0)
      Close(&entry.second, now);  // the next daemon closes the jobs that still run
  }
  jobs_.clear();
  sessions_.clear();
  FlushLearned();
}

// --- sessions ------------------------------------------------------------------------------------

void History::Begin(uint64_t session, uint64_t job, pid_t pid, const Now& now) {
  OpenSession& open = sessions_[session];
  const std::string arguments = ArgumentsOf(pid);
  open.job = job;
  open.command = ForPeople(arguments);
  // The name by which it was called does not matter.
  const size_t first = std::min(arguments.find('\0'), arguments.size());
  open.key = CommandProfiles::KeyOf(ExecutableOf(pid), std::string_view(arguments).substr(first));
  OpenJob& whole = jobs_[job];
  whole.record.job = job;
  if (whole.record.command.empty()) whole.record.command = open.command;
  if (whole.record.sessions == 0) {
    whole.begin_us = now.us;
    whole.record.begin_s = now.s;
  }
  ++whole.record.sessions;
  ++whole.open;
}

void History::Read(uint64_t session, const SessionReading& reading) {
  const std::map<uint64_t, OpenSession>::iterator found = sessions_.find(session);
  if (found == sessions_.end()) return;
  OpenSession& open = found->second;
  open.reading = reading;
  // The client can write these words, too: whatever they are, sums stay numbers.
  for (uint64_t* const word :
       {&open.reading.iterations, &open.reading.total_us, &open.reading.waited_us,
        &open.reading.persistent_bytes, &open.reading.ephemeral_bytes}) {
    *word = std::min(*word, kReadingMax);
  }
  open.peak_bytes =
      std::max(open.peak_bytes, open.reading.persistent_bytes + open.reading.ephemeral_bytes);
}

void History::EndOfReadings(const Now& now) {
  std::vector<OpenSession*> busy;  // had iterations since the last time
  for (std::pair<const uint64_t, OpenSession>& entry : sessions_) {
    if (entry.second.reading.iterations > entry.second.before.iterations) {
      busy.push_back(&entry.second);
    }
  }
  for (OpenSession* const session : busy) {
    const uint64_t count = session->reading.iterations - session->before.iterations;
    const uint64_t us = Grown(session->reading.total_us, session->before.total_us);
    const OpenSession* other = nullptr;
    size_t others = 0;
    for (const OpenSession* const candidate : busy) {
      // Sessions of one lane take turns: they are never beside each other.
      const bool same_lane =
          candidate->reading.lane == session->reading.lane && session->reading.lane != 0;
      if (candidate == session || same_lane) continue;
      other = candidate;
      ++others;
    }
    if (others > 1) continue;
    if (others == 1 && session->beside.size() >= CommandProfiles::kBesideMax &&
        session->beside.count(other->key) == 0) {
      continue;
    }
    Mean& mean = others == 0 ? session->alone : session->beside[other->key];
    mean.count += count;
    mean.us += us;
  }
  for (std::pair<const uint64_t, OpenSession>& entry : sessions_) {
    entry.second.before = entry.second.reading;
  }
  std::vector<uint64_t> over;
  for (std::pair<const uint64_t, OpenJob>& entry : jobs_) {
    OpenJob& job = entry.second;
    if (job.launched && !job.run_over && job.run_pidfd.valid() &&
        ipc::ProcessEnded(job.run_pidfd.get())) {
      job.run_over = true;  // killed before it could say how the program ended
    }
    if (IsOver(job)) over.push_back(entry.first);
  }
  for (const uint64_t job : over) CloseIfOver(job, now);
  FlushLearned();
}

void History::End(uint64_t session, const TimeCounts& times, const std::string& note,
                  const Now& now) {
  const std::map<uint64_t, OpenSession>::iterator found = sessions_.find(session);
  if (found == sessions_.end()) return;
  OpenSession ended = std::move(found->second);
  sessions_.erase(found);
  OpenJob& job = jobs_[ended.job];
  for (size_t i = 0; i < times.size(); ++i) job.times[i] += times[i];
  job.record.iterations += ended.reading.iterations;
  job.record.waited_us += ended.reading.waited_us;
  job.record.peak_bytes = std::max(job.record.peak_bytes, ended.peak_bytes);
  if (!note.empty()) job.record.note = note;
  job.record.end_s = now.s;
  job.end_us = now.us;
  --job.open;
  const uint64_t id = ended.job;
  constexpr size_t kRemembered = 64;  // a job may make sessions for days
  if (job.ended.size() < kRemembered) job.ended.push_back(std::move(ended));
  CloseIfOver(id, now);
}

// --- what is learned -----------------------------------------------------------------------------

Needs History::NeedsOf(const OpenSession& session) {
  const SessionReading& reading = session.reading;
  Needs needs;
  needs.iterations = static_cast<int64_t>(reading.iterations);
  needs.total_us = static_cast<int64_t>(reading.total_us);
  if (session.alone.count >= kMeanOfMin) {
    needs.iteration_us = static_cast<int64_t>(session.alone.us / session.alone.count);
    needs.total_us = static_cast<int64_t>(
        std::min(static_cast<double>(needs.iteration_us) * static_cast<double>(needs.iterations),
                 static_cast<double>(kReadingMax)));
  } else if (reading.iterations != 0) {
    needs.iteration_us = static_cast<int64_t>(reading.total_us / reading.iterations);
  }
  needs.persistent_bytes = static_cast<int64_t>(reading.persistent_bytes);
  needs.ephemeral_bytes = static_cast<int64_t>(reading.ephemeral_bytes);
  return needs;
}

void History::LearnFrom(const OpenSession& session, const Now& now) {
  if (session.reading.iterations == 0) return;
  profiles_.Learn(session.key, session.command, NeedsOf(session), now.s);
  unsaved_ = true;
  if (session.alone.count < kMeanOfMin || session.alone.us == 0) return;
  for (const std::pair<const uint64_t, Mean>& entry : session.beside) {
    if (entry.second.count < kMeanOfMin) continue;
    const double alone =
        static_cast<double>(session.alone.us) / static_cast<double>(session.alone.count);
    const double here =
        static_cast<double>(entry.second.us) / static_cast<double>(entry.second.count);
    profiles_.LearnBeside(session.key, entry.first,
                          static_cast<int64_t>(std::clamp(here / alone * 1000, 1.0, 1e6)));
  }
}

const CommandProfile* History::KnownOf(uint64_t session) const {
  const std::map<uint64_t, OpenSession>::const_iterator found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : profiles_.Find(found->second.key);
}

// Said once when it begins and once when it is over.
void History::Log(const std::string& path, const absl::Status& written) {
  if (written.ok() && failing_.erase(path) != 0) spdlog::info("{} is written again", path);
  if (!written.ok() && failing_.insert(path).second) {
    spdlog::error("{}; running jobs go on, but what ends now is not remembered",
                  std::string(written.message()));
  }
}

void History::FlushLearned() {
  if (!unsaved_ || dir_.empty()) return;
  const std::string path = absl::StrCat(dir_, "/", kLearnedName);
  // Another daemon of ours may have written since.
  const absl::StatusOr<std::string> text = ipc::ReadBounded(path, CommandProfiles::kFileBytesMax);
  if (text.ok()) (void)profiles_.MergeUntrusted(*text);
  const absl::Status written = ipc::WriteWhole(path, profiles_.Encode());
  unsaved_ = !written.ok();
  Log(path, written);
}

}  // namespace control

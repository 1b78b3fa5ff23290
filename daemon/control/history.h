// Jobs from their first session to their end, for `laneway history` and for the profiles of
// commands.
//
// A job of `laneway run` is over when the program has ended and its sessions are gone; any other
// one when its last session is. Records go to $STATE/history.jsonl, what commands need to
// $STATE/learned.jsonl (learned.h); a disk that is full costs these and a line in the log, never a
// running job. Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/control/command_profiles.h"
#include "daemon/control/iteration_sampler.h"
#include "ipc/history.h"
#include "ipc/unique_fd.h"

namespace control {

struct Now {
  int64_t us = 0;  // CLOCK_MONOTONIC
  int64_t s = 0;   // since 1970
};

// One reading of a session.
struct SessionReading {
  uint64_t iterations = 0;
  uint64_t total_us = 0;  // of these
  uint64_t waited_us = 0;
  uint64_t persistent_bytes = 0;
  uint64_t ephemeral_bytes = 0;
  uint64_t lane = 0;
};

class History {
 public:
  // Reads the records. `state_dir` empty: nothing is kept beyond this process.
  explicit History(std::string state_dir);

  // --- `laneway run` says so
  void Launched(uint64_t job, const std::string& command, ipc::UniqueFd run_pidfd);
  void Exited(uint64_t job, int code, const Now& now);
  // A program that was launched has not ended: it may come to its first CUDA call at any time.
  bool HasPrograms() const;

  // --- sessions
  void Begin(uint64_t session, uint64_t job, pid_t pid, const Now& now);
  void Read(uint64_t session, const SessionReading& reading);
  // After every session was read: notes which sessions ran at the same time, and which jobs are
  // over.
  void EndOfReadings(const Now& now);
  // `note`: the fault of the session, or empty. `times`: of the whole session.
  void End(uint64_t session, const TimeCounts& times, const std::string& note, const Now& now);
  // The daemon ends; `programs_end`: all programs end with it.
  void CloseAll(bool programs_end, const Now& now);

  // The profile of the command that this session runs; null: no run of it has ended yet.
  const CommandProfile* KnownOf(uint64_t session) const;
  const CommandProfiles& profiles() const { return profiles_; }
  bool IsOpen(uint64_t job) const { return jobs_.count(job) != 0; }
  // No job is open.
  bool quiet() const { return jobs_.empty(); }

 private:
  struct Mean {
    uint64_t count = 0;
    uint64_t us = 0;
  };
  struct OpenSession {
    uint64_t job = 0;
    uint64_t key = 0;  // of its command
    std::string command;
    SessionReading reading;
    SessionReading before;  // at the end of the last readings
    uint64_t peak_bytes = 0;
    Mean alone;
    std::map<uint64_t, Mean> beside;  // by the key of the only other command
  };
  struct OpenJob {
    ipc::HistoryRecord record;
    int64_t begin_us = 0;
    int64_t end_us = 0;
    bool launched = false;  // by `laneway run`
    bool run_over = false;  // which has ended
    ipc::UniqueFd run_pidfd;
    size_t open = 0;  // sessions
    TimeCounts times = {};
    std::vector<OpenSession> ended;
  };
  static Needs NeedsOf(const OpenSession& session);
  bool IsOver(const OpenJob& job) const;
  void CloseIfOver(uint64_t job, const Now& now);
  void Close(OpenJob* job, const Now& now);
  void LearnFrom(const OpenSession& session, const Now& now);
  void Log(const std::string& path, const absl::Status& written);
  void FlushLearned();

  const std::string dir_;
  CommandProfiles profiles_;
  bool unsaved_ = false;
  std::set<std::string> failing_;  // files whose last write failed, and was told
  std::map<uint64_t, OpenSession> sessions_;
  std::map<uint64_t, OpenJob> jobs_;
};

}  // namespace control

// Carries verdicts on replay from the sessions that measured them to later sessions, through the
// file that outlives lanewayd: $STATE/replay_verdicts (replay_verdicts.h), mode 0600.
//
// A file that is damaged or of another version counts as empty, and the next write replaces it. One
// of another user, a link, or what is no file is neither read nor replaced: verdicts are then kept
// in memory alone. Each is one sentence in lanewayd's log. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "daemon/control/replay_verdicts.h"
#include "daemon/control/session_table.h"

namespace control {

class SessionVerdicts {
 public:
  // Reads the file. `state_dir` empty: nothing is kept beyond this process.
  explicit SessionVerdicts(const std::string& state_dir);

  // The session's client may go by what is in force. REQUIRES: the session's file is fresh.
  void Give(const Session& session) const;

  // A session begins. Verdicts that it told before this call are another lanewayd's to keep.
  void Begin(const Session& session);
  // Takes over what the session has told since the last time.
  void Read(const Session& session, int64_t now_s);
  void End(const Session& session);

  // Writes what has changed, together with what another lanewayd has written.
  void Save();

  size_t size() const { return verdicts_.size(); }

 private:
  absl::Status ReadFile(ReplayVerdicts* read);
  void TakeUntrusted(const Session& session, uint32_t number, int64_t now_s);
  void Say(const std::string& sentence);

  const std::string path_;  // empty: none
  ReplayVerdicts verdicts_;
  bool unsaved_ = false;
  std::string said_;                   // the last trouble with the file
  std::map<uint64_t, uint32_t> seen_;  // how much each session has told
};

}  // namespace control

// Which worker a session belongs to, and which workers may end. Pure: it reads records, counts
// offences, and sends nothing.
//
// Sessions share the current worker. A contained session has a worker of its own. A session is
// contained when its mode says so, or when its program has ended kOffencesMax workers (quarantine).
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/control/children.h"
#include "daemon/control/session_table.h"

namespace control {

// The worker that serves the session, or is to serve it; null: none is ready.
const Worker* WorkerFor(const Session& session, const Children& children);

// True when another worker can take the session over in its present state.
bool CanMove(const Session& session);

// The workers that take no more sessions and have none left, except for `held` and for those that
// are retired already.
std::vector<uint32_t> UnusedWorkers(const std::map<uint32_t, Worker>& workers,
                                    const SessionTable& sessions, const std::set<uint32_t>& held);

class Placement {
 public:
  static constexpr int kOffencesMax = 2;
  static constexpr int kMovesFailedMax = 3;  // in a row; then the session may be what ends workers

  // --- programs that end workers
  // Returns how many workers the program has ended by now.
  int NoteOffence(uint32_t user, const std::string& program) {
    return ++offences_[{user, program}];
  }
  bool IsQuarantined(uint32_t user, const std::string& program) const;

 private:
  std::map<std::pair<uint32_t, std::string>, int> offences_;  // by user and program
};

}  // namespace control

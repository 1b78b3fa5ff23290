// The files of a session, as lanewayd makes them: the session file with its page, and for a session
// of a worker the memory that it pins and the memory that is on the host. Thread safety: stateless.
#pragma once

#include "absl/status/status.h"
#include "daemon/control/session_table.h"

namespace control {

// Makes fresh files, in place of any that the session has. REQUIRES: it has a slot, or is
// in-process. The error is a sentence.
absl::Status MakeSessionFiles(Session* session);

}  // namespace control

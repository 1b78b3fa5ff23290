// Makes the files of a session: the session file with its page; for a session of a worker also the
// files for pinned memory and for memory on the host. Thread safety: stateless.
#pragma once

#include "absl/status/status.h"
#include "daemon/control/session_table.h"

namespace control {

// Each makes fresh files, in place of any that the session has. The error is a sentence.
// For a session of a worker. REQUIRES: it has a slot.
absl::Status MakeWorkerFiles(Session* session);
// For a program that keeps its own context: a page alone.
absl::Status MakePage(Session* session);

}  // namespace control

// The memory of a session that other processes map: the client maps the session's file, and
// lanewayd the page of the session's progress. Thread safety: as the parts say.
#pragma once

#include <utility>

#include "daemon/common/progress_map.h"
#include "daemon/worker/print_sink.h"
#include "daemon/worker/registered_file.h"
#include "daemon/worker/session.h"

namespace worker {

struct SessionPages {
  // Takes the setup's file. `environment` outlives this object.
  SessionPages(const Environment& environment, SessionSetup* setup)
      : file(environment, std::move(setup->file)),
        progress(setup->swap_fd),
        prints(setup->session_id, file.get()) {}
  SessionPages(const SessionPages&) = delete;

  RegisteredFile file;
  common::ProgressMap progress;
  PrintSink prints;
};

}  // namespace worker

// The descriptors of one session. lanewayd and the session's worker each hold all of them, and hand
// them over with the session's record: AttachSession to a worker, SessionRecord to the next
// lanewayd. Thread safety: none.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "ipc/unique_fd.h"

namespace common {

struct SessionFds {
  ipc::UniqueFd file;     // the session file (ipc/session_file.h)
  ipc::UniqueFd pinned;   // the sparse file of the program's pinned memory
  ipc::UniqueFd process;  // the program's pidfd
  ipc::UniqueFd swap;     // the session's memory while it is on the host (swap_file.h)

  // As a message carries them.
  std::array<int, 4> ToMessage() const {
    return {file.get(), pinned.get(), process.get(), swap.get()};
  }
  // Takes the descriptors of a message over. Nothing when the message has another number of them.
  static std::optional<SessionFds> FromMessage(std::vector<ipc::UniqueFd>* fds) {
    if (fds->size() != 4) return std::nullopt;
    return SessionFds{std::move((*fds)[0]), std::move((*fds)[1]), std::move((*fds)[2]),
                      std::move((*fds)[3])};
  }
};

}  // namespace common

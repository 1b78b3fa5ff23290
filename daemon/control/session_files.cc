#include "daemon/control/session_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ipc/session_file.h"

namespace control {
namespace {

absl::Status MakeSessionFile(Session* session) {
  absl::StatusOr<int> file =
      ipc::SessionFile::Create(session->record.session_id, session->record.slot);
  if (!file.ok()) return file.status();
  session->fds.file = ipc::UniqueFd(*file);
  session->page = common::SessionPageMap(*file);
  return absl::OkStatus();
}

}  // namespace

// No calls travel: of the session file only the page is needed.
absl::Status MakePage(Session* session) {
  if (const absl::Status made = MakeSessionFile(session); !made.ok()) return made;
  if (session->page.get() == nullptr) return absl::ResourceExhaustedError("mmap; raise ulimit -v");
  (void)fallocate(session->fds.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  ipc::kPageBytes, ipc::kSessionMemoryBytes - ipc::kPageBytes);
  return absl::OkStatus();
}

absl::Status MakeWorkerFiles(Session* session) {
  if (const absl::Status made = MakeSessionFile(session); !made.ok()) return made;
  // Sparse: only pages that are written take memory.
  // Sealed: a client that shrinks it would make the worker's copies fault.
  session->fds.pinned =
      ipc::UniqueFd(memfd_create("laneway-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  session->fds.swap = ipc::UniqueFd(memfd_create("laneway-swap", MFD_CLOEXEC));
  session->progress = common::ProgressMap(session->fds.swap.get());
  if (session->page.get() == nullptr || !session->fds.pinned.valid() ||
      !session->progress.shared() ||
      ftruncate(session->fds.pinned.get(), ipc::limits::kPinnedWindowBytes) != 0 ||
      fcntl(session->fds.pinned.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for a session's files: ", std::strerror(errno), "; raise ulimit -n"));
  }
  return absl::OkStatus();
}

}  // namespace control

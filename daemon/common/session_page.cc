#include "daemon/common/session_page.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace common {

SessionPageMap::SessionPageMap(int session_fd) {
  struct stat info;
  if (fstat(session_fd, &info) != 0 || info.st_size != static_cast<off_t>(ipc::kSessionFileBytes))
    return;
  void* const page =
      mmap(nullptr, ipc::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, session_fd, 0);
  if (page != MAP_FAILED) page_ = static_cast<ipc::SessionPage*>(page);
}

SessionPageMap::~SessionPageMap() {
  if (page_ != nullptr) munmap(page_, ipc::kPageBytes);
}

}  // namespace common

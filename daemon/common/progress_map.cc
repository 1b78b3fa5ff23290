#include "daemon/common/progress_map.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/swap_file.h"

namespace common {

static_assert(kProgressOffset % alignof(ipc::Progress) == 0 &&
              kProgressOffset + sizeof(ipc::Progress) <= kTimesOffset);

ProgressMap::ProgressMap(int swap_fd) {
  struct stat info;
  if (swap_fd < 0 || fstat(swap_fd, &info) != 0) return;
  const off_t page_bytes = static_cast<off_t>(kTimesOffset);
  if (info.st_size < page_bytes && ftruncate(swap_fd, page_bytes) != 0) return;
  void* const page = mmap(nullptr, kTimesOffset, PROT_READ | PROT_WRITE, MAP_SHARED, swap_fd, 0);
  if (page == MAP_FAILED) return;
  mapped_ = reinterpret_cast<ipc::Progress*>(static_cast<char*>(page) + kProgressOffset);
}

ProgressMap::~ProgressMap() {
  if (mapped_ != nullptr) munmap(reinterpret_cast<char*>(mapped_) - kProgressOffset, kTimesOffset);
}

}  // namespace common

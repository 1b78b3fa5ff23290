#include "daemon/common/swap_file.h"

#include <unistd.h>

namespace common {

bool HoldsMemory(int swap_fd) {
  uint64_t count = 0;
  return pread(swap_fd, &count, sizeof count, 0) == sizeof count && count != 0;
}

int64_t DefaultSwapBytes() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2; }

}  // namespace common

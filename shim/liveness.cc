#include "shim/liveness.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shim {
namespace {

// Field 22 of /proc/PID/stat; 0 when there is no such process or it is a zombie.
uint64_t StartTicks(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* field = std::strrchr(text, ')');  // the command's name may hold anything
  if (field == nullptr || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X') return 0;
  ++field;
  for (int i = 3; i < 22 && field != nullptr; ++i) field = std::strchr(field + 1, ' ');
  return field == nullptr ? 0 : std::strtoull(field, nullptr, 10);
}

}  // namespace

Liveness::Liveness(pid_t pid) : pid_(pid), start_ticks_(pid > 0 ? StartTicks(pid) : 0) {}

bool Liveness::Alive() const { return start_ticks_ == 0 || StartTicks(pid_) == start_ticks_; }

}  // namespace shim

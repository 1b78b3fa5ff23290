#include "daemon/common/threads.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"

namespace common {

std::thread StartThread(const char* purpose, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& failure) {
    Log("worker", absl::StrCat("no thread ", purpose, ": ", failure.what()));
    return {};
  }
}

}  // namespace common

#include "daemon/common/child_main.h"

#include <poll.h>
#include <time.h>

#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace common {
namespace {

bool TakeValue(std::string_view argument, std::string_view name, std::string* value) {
  if (argument.substr(0, name.size()) != name) return false;
  *value = std::string(argument.substr(name.size()));
  return true;
}

}  // namespace

absl::StatusOr<ChildArguments> ParseChildArguments(int argc, char** argv) {
  ChildArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string value;
    bool good = true;
    if (TakeValue(argument, "--runtime-dir=", &value)) {
      arguments.runtime_dir = value;
    } else if (TakeValue(argument, "--device=", &value)) {
      arguments.device = value;
    } else if (TakeValue(argument, "--number=", &value)) {
      good = absl::SimpleAtoi(value, &arguments.number);
    } else if (TakeValue(argument, "--control-fd=", &value)) {
      good = absl::SimpleAtoi(value, &arguments.control_fd);
    } else if (TakeValue(argument, "--linger=", &value)) {
      good = absl::SimpleAtoi(value, &arguments.linger_s);
    } else if (TakeValue(argument, "--scrub=", &value)) {
      arguments.scrub = value;
      good = value == "tenants" || value == "always";
    } else if (TakeValue(argument, "--swap-bytes=", &value)) {
      good = absl::SimpleAtoi(value, &arguments.swap_bytes);
    } else if (argument == "--own") {
      arguments.own = true;
    } else if (TakeValue(argument, "--reserve-bytes=", &value)) {
      good = absl::SimpleAtoi(value, &arguments.reserve_bytes);
    } else {
      good = false;
    }
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown argument ", argv[i], "; this program is started by lanewayd, not by hand"));
    }
  }
  if (arguments.runtime_dir.empty()) {
    return absl::InvalidArgumentError(
        "--runtime-dir is missing; this program is started by lanewayd, not by hand");
  }
  return arguments;
}

bool DaemonIsGone(int control_fd) {
  pollfd entry{control_fd, 0, 0};
  return control_fd >= 0 && poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

int FailStart(int control_fd, std::string_view sentence) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(sentence.size()), sentence.data());
  ipc::control::StartFailed failed;
  ipc::control::SetText(failed.sentence, sentence);
  if (control_fd >= 0) (void)ipc::control::Send<ipc::control::ChildToDaemon>(control_fd, failed);
  return 1;
}

void Log(std::string_view process, std::string_view text) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts;
  localtime_r(&now.tv_sec, &parts);
  char stamp[32];
  strftime(stamp, sizeof stamp, "%F %T", &parts);
  std::fprintf(stderr, "[%s.%03ld] %.*s: %.*s\n", stamp, now.tv_nsec / 1'000'000,
               static_cast<int>(process.size()), process.data(), static_cast<int>(text.size()),
               text.data());
}

}  // namespace common

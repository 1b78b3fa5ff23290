#include "cli/request.h"

#include <cstdio>

#include "cli/daemon_link.h"
#include "ipc/runtime_dir.h"

namespace cli {
namespace {

constexpr int64_t kRequestTimeoutUs = 10'000'000;

}  // namespace

int Say(int code, const std::string& sentence) {
  std::fprintf(stderr, "laneway: %s\n", sentence.c_str());
  return code;
}

std::string DirOf(const Request& request) {
  return request.options.runtime_dir.empty() ? ipc::RuntimeDir() : request.options.runtime_dir;
}

absl::Status ReplaceLostDaemon(const ipc::Options& options) {
  const std::string dir = options.runtime_dir.empty() ? ipc::RuntimeDir() : options.runtime_dir;
  if (!ipc::CheckRuntimeDir(dir).ok() || DaemonLives(dir) || !LeftoversLive(dir))
    return absl::OkStatus();
  return EnsureDaemon(options);
}

absl::StatusOr<std::string> AskDaemon(const Request& request, const std::string& json) {
  const absl::Status replaced = ReplaceLostDaemon(request.options);
  if (!replaced.ok()) return replaced;
  return Ask(DirOf(request), json, kRequestTimeoutUs);
}

}  // namespace cli

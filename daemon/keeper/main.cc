// laneway-keeper: owns all physical device memory, so that memory outlives workers. Started by
// lanewayd.
#include <csignal>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "daemon/common/driver.h"
#include "daemon/keeper/keeper.h"
#include "daemon/keeper/server.h"
#include "ipc/control.h"
#include "ipc/socket.h"

namespace keeper {
namespace {

using ipc::control::DeviceKind;

int Serve(const common::ChildArguments& arguments, const common::Driver& driver, Keeper* keeper) {
  if (common::DaemonIsGone(arguments.control_fd))
    return common::FailStart(-1, "the daemon that started this keeper has ended");
  Server server(keeper, arguments.linger_s);
  const absl::Status listening = server.Listen(arguments.runtime_dir);
  if (!listening.ok()) {
    return common::FailStart(arguments.control_fd, std::string(listening.message()));
  }
  if (arguments.control_fd >= 0) server.Greet(ipc::UniqueFd(arguments.control_fd));
  common::Log("keeper", absl::StrCat("ready, ", keeper->Describe().device_count, " device(s)"));
  server.Run();
  return 0;
}

// `auto` takes the first kind that opens; the software GPU is asked last.
int Main(const common::ChildArguments& arguments) {
  std::string reason;
  for (const DeviceKind kind : {DeviceKind::kCuda, DeviceKind::kSoft}) {
    const char* const name = kind == DeviceKind::kCuda ? "cuda" : "soft";
    if (arguments.device != "auto" && arguments.device != name) continue;
    absl::StatusOr<common::Driver> driver = common::LoadDriver(kind);
    if (!driver.ok()) {
      reason = std::string(driver.status().message());
      continue;
    }
    Keeper keeper(*driver, arguments.reserve_bytes,
                  arguments.scrub == "always" ? Scrub::kAlways : Scrub::kTenants);
    const absl::Status opened = keeper.Open();
    if (opened.ok()) return Serve(arguments, *driver, &keeper);
    reason = std::string(opened.message());
  }
  return common::FailStart(arguments.control_fd, reason);
}

}  // namespace
}  // namespace keeper

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error to report, not an end
  ipc::RaiseDescriptorLimit();
  const absl::StatusOr<common::ChildArguments> arguments = common::ParseChildArguments(argc, argv);
  if (!arguments.ok()) return common::FailStart(-1, std::string(arguments.status().message()));
  return keeper::Main(*arguments);
}

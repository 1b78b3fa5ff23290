// laneway-worker: owns the CUDA contexts of one trust group and executes its sessions' calls.
// Started by lanewayd.
#include <csignal>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "daemon/common/crash_note.h"
#include "daemon/common/driver.h"
#include "daemon/common/heap.h"
#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/control.h"
#include "daemon/worker/crash_handler.h"
#include "daemon/worker/devices.h"
#include "daemon/worker/extents.h"
#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/libraries.h"
#include "daemon/worker/reaper.h"
#include "daemon/worker/swap.h"
#include "ipc/control.h"
#include "ipc/socket.h"

namespace worker {
namespace {

int Main(const common::ChildArguments& arguments) {
  const ipc::control::DeviceKind kind = arguments.device == "cuda"
                                            ? ipc::control::DeviceKind::kCuda
                                            : ipc::control::DeviceKind::kSoft;
  absl::StatusOr<common::Driver> driver = common::LoadDriver(kind);
  if (!driver.ok()) {
    return common::FailStart(arguments.control_fd, std::string(driver.status().message()));
  }
  // Before the software GPU's own handler, which passes on what is no fault of a kernel or a copy.
  static StreamOwners owners;  // the driver's threads may print until the process is gone
  HandleCrashes(common::CrashNotePath(arguments.runtime_dir, arguments.number), &owners,
                driver->softgpuRunningStream);
  Devices devices(*driver);
  const absl::Status opened = devices.Open();
  if (!opened.ok()) return common::FailStart(arguments.control_fd, std::string(opened.message()));
  KeeperExtents extents(*driver, arguments.runtime_dir, arguments.number);
  extents.OnKeeperChanged();
  Control control({arguments.runtime_dir, arguments.number, arguments.linger_s, arguments.own},
                  &devices, &extents);
  Environment environment;
  const absl::Status libraries = LoadLibraries(kind, &environment);
  if (!libraries.ok()) {
    return common::FailStart(arguments.control_fd, std::string(libraries.message()));
  }
  environment.contexts = devices.contexts();
  environment.extents = &extents;
  environment.poison = &control;
  environment.owners = &owners;
  devices.RoutePrints(&owners);
  BackedAddresses backed;
  environment.backed = &backed;
  LaneTable lanes(&environment);
  JobBooks jobs;
  SwapSpace swap(arguments.swap_bytes);
  Reaper reaper;
  environment.lanes = &lanes;
  environment.jobs = &jobs;
  environment.swap = &swap;
  environment.reaper = &reaper;
  environment.on_processors = kind == ipc::control::DeviceKind::kSoft;
  control.SetEnvironment(environment);
  if (common::DaemonIsGone(arguments.control_fd))
    return common::FailStart(-1, "the daemon that started this worker has ended");
  const absl::Status listening = control.Listen();
  if (!listening.ok()) {
    return common::FailStart(arguments.control_fd, std::string(listening.message()));
  }
  if (arguments.control_fd >= 0) control.Greet(ipc::UniqueFd(arguments.control_fd));
  common::Log("worker", absl::StrCat(arguments.number, " is ready"));
  control.Run();
  return 0;
}

}  // namespace
}  // namespace worker

int main(int argc, char** argv) {
  common::BoundHeap();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error to report, not an end
  // A stream held by a host function must not stall a neighbour's that shares its hardware queue.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  ipc::RaiseDescriptorLimit();
  const absl::StatusOr<common::ChildArguments> arguments = common::ParseChildArguments(argc, argv);
  if (!arguments.ok()) return common::FailStart(-1, std::string(arguments.status().message()));
  return worker::Main(*arguments);
}

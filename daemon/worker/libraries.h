// The function tables that a worker executes with: the driver and the libraries of its device.
#pragma once

#include "absl/status/status.h"
#include "daemon/worker/session.h"
#include "ipc/control.h"

namespace worker {

// Fills environment->driver, cublas and cublaslt from the device's libraries; the tables live as
// long as the process. A missing library is a log line and a null table: its calls then answer "not
// supported". Call once, in main(), before any session.
absl::Status LoadLibraries(ipc::control::DeviceKind kind, Environment* environment);

}  // namespace worker

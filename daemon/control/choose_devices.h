// Which devices a job gets (`laneway run --gpus`), and how its sessions come to the scheduler.
// Pure. Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ipc/control.h"
#include "ipc/scheduling_terms.h"
#include "scheduler/event.h"

namespace control {

// How much a device has been given to do.
struct DeviceLoad {
  uint64_t sessions = 0;  // and jobs whose sessions are to be there
  uint64_t used_bytes = 0;
};

// Where some devices are wanted, names those that the fewest use, then those with the least memory
// in use. InvalidArgument, one sentence, when the terms name devices that are not there, or want
// more than there are. `devices`: all, in the order of their numbers.
absl::Status ChooseDevices(const std::vector<DeviceLoad>& devices, ipc::SchedulingTerms* terms);

// On which device a session of such a job is counted before it has any memory.
uint32_t FirstDeviceOf(const ipc::SchedulingTerms& terms);

// All that was said of its job.
scheduler::SessionArrived ArrivedWith(const ipc::control::SessionRecord& record);

}  // namespace control

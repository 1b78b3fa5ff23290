// Describes a device for a client: name, attributes, and the memory that the client's job may use.
#pragma once

#include "ipc/calls/vendor.h"

#include "daemon/worker/holdings.h"
#include "ipc/calls/laneway_calls.h"

namespace worker {

// `device` counts those that the session sees. CUDA_ERROR_INVALID_DEVICE when it sees no such one.
CUresult DescribeDevice(const Holdings& held, CUdevice device, ipc::DeviceInfo* info);

}  // namespace worker

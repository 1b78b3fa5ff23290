// Serves the calls about the session itself (ipc::SessionCalls): its devices, its iterations, and
// the reset of a device. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <functional>
#include <utility>

#include "daemon/worker/call_handlers/stream_handler.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "ipc/door.h"

namespace worker {

class SessionHandler final : public ipc::SessionCalls {
 public:
  // All outlive this object. `reset` destroys the program's objects and frees its memory, once the
  // device has done everything.
  SessionHandler(const Holdings* held, StreamHandler* streams, Iterations* iterations,
                 LaneExecutor* turn, std::function<void()> reset)
      : held_(*held),
        streams_(*streams),
        iterations_(*iterations),
        turn_(*turn),
        reset_(std::move(reset)) {}
  SessionHandler(const SessionHandler&) = delete;

  CUresult Ping(uint64_t token, uint64_t* echo) override;
  CUresult GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) override;
  CUresult ContextReset(CUdevice device) override;
  CUresult Boundary(const ipc::BoundaryInfo* info) override;
  CUresult GrowHeap(size_t bytes) override;

 private:
  const Holdings& held_;
  StreamHandler& streams_;
  Iterations& iterations_;
  LaneExecutor& turn_;
  const std::function<void()> reset_;
};

}  // namespace worker

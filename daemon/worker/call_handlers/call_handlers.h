// One session's handlers of calls, and the way of a call to its handler.
//
// The table of calls (ipc/calls) says which handler serves a row; each handler owns what only its
// calls need. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "daemon/worker/call_context.h"
#include "daemon/worker/call_handlers/array_handler.h"
#include "daemon/worker/call_handlers/blas_handles.h"
#include "daemon/worker/call_handlers/call_door.h"
#include "daemon/worker/call_handlers/copy_handler.h"
#include "daemon/worker/call_handlers/graph_handler.h"
#include "daemon/worker/call_handlers/memory_handler.h"
#include "daemon/worker/call_handlers/module_handler.h"
#include "daemon/worker/call_handlers/session_handler.h"
#include "daemon/worker/call_handlers/stream_handler.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/run_replayer.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"
#include "daemon/worker/session_trace.h"
#include "ipc/dispatch.h"

namespace worker {

class CallHandlers final : public LaunchSource, public LaunchServer {
 public:
  // The rest of the session, as the handlers see it. All outlive this object.
  struct Surroundings {
    Holdings* held;
    CallContext* call;
    SessionLife* life;
    PersistentMemory* memory;
    LaneUse* lane;
    LaneExecutor* turn;
    Iterations* iterations;
    std::function<void()> reset;  // as SessionHandler says
    ipc::SessionFile* file;
    ClientBell* bell;
    int swap_fd;
  };
  explicit CallHandlers(const Surroundings& around);
  CallHandlers(const CallHandlers&) = delete;

  // This thread runs the session: driver calls that it makes while it serves have the session's
  // events.
  void BeginThread();

  // A message is about to be served.
  void Begin(const ipc::MessageHeader& header);
  // Makes the context of a message's device current.
  void UseDevice(uint32_t header_context);
  // Serves the call that Begin() was told of.
  ipc::Served ServeUntrusted(uint16_t op, std::span<const std::byte> body, ipc::Writer* reply);

  const CallContext& call() const { return call_; }
  ipc::Session& door() { return door_; }
  BlasHandles& blas() { return blas_; }
  ArrayHandler& arrays() { return movers_.arrays; }
  CopyHandler& copies() { return movers_.copies; }
  MemoryHandler& memory() { return memory_; }
  ModuleHandler& modules() { return modules_; }
  StreamHandler& streams() { return streams_; }
  SessionHandler& session() { return session_; }
  SessionTrace& trace() { return trace_; }

  // --- LaunchSource
  std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) override;
  bool AreBacked(TouchedSpans* spans) override { return spans->AreBacked(&held_.addresses); }
  bool HasStream(CUstream stream) override { return held_.streams.OfDriver(stream) != nullptr; }
  void UseStream(CUstream stream) override;
  bool AreOrdered(CUstream stream, CUstream other) override;
  uint64_t names_version() const override { return handles_.version(); }

  // --- LaunchServer
  CUresult DoStepUntrusted(std::span<const std::byte> message) override;
  bool LaunchesLeaveBytesAlone() const override {
    return modules_.AreStateless() && held_.arrays.bytes() == 0;
  }

  // Steps of a chunk: `messages` begin with one that lies at `place` of the chunk area.
  // `verify`: they are to be executed both ways.
  LaunchRuns::Replayed TryReplayUntrusted(uint32_t place, std::span<const std::byte> messages,
                                          bool verify);

  // Replay does without scratch memory from now on, until the client gives other orders.
  void GiveUpScratch() { replayer_.orders()->ForgetRenames(); }

  // The program's objects go: libraries' handles, graphs, events, modules, streams. REQUIRES: the
  // device has finished with them.
  void DestroyObjects();

 private:
  std::optional<Described> DescribeWriteUntrusted(std::span<const std::byte> message);

  Holdings& held_;
  const ipc::DriverTable table_;  // the driver's, but for calls that a session answers itself
  HandleMap handles_;
  CallContext& call_;
  BlasHandles blas_;
  GraphHandler graphs_;
  ModuleHandler modules_;
  StreamHandler streams_;
  MemoryHandler memory_;
  SessionHandler session_;
  CallDoor door_;
  struct Movers {  // of bytes, into memory and into arrays
    CopyHandler copies;
    ArrayHandler arrays;
  };
  Movers movers_;
  RunReplayer replayer_;
  const ipc::Targets targets_;
  SessionTrace trace_;
};

}  // namespace worker

// Replays runs of launches, fills and copies. A run that the client wants verified is executed both
// ways, as a graph and one by one, on the same memory, and every byte of the session's device
// memory is compared afterwards, but for scratch memory. The results of single launches are those
// that stay.
//
// A run that may leave anything else is replayed without being verified: it may reach pinned host
// memory, which the program may write in the meantime, or variables of modules; it may print; the
// session has more memory than limits::kVerifyBytesMax, or several devices. The same holds where
// the session's work does not end within kPatience: a stream may wait for what the program's next
// message does. The page counts what was verified. At a difference the page names the kernel that
// wrote the first byte that differs, and the run is served step by step from then on.
// Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/time/time.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/launch_orders.h"
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/scratch_memory.h"
#include "daemon/worker/session_bytes.h"
#include "daemon/worker/session_life.h"
#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace worker {

// The session's calls, as the replayer needs them.
class LaunchServer {
 public:
  virtual ~LaunchServer() = default;
  // Serves the message of one step of a run.
  virtual CUresult DoStepUntrusted(std::span<const std::byte> message) = 0;
  // True when all that kernels of the session leave is bytes in memory: none prints, no module has
  // variables that kernels write, and every module could be looked into.
  virtual bool LaunchesLeaveBytesAlone() const = 0;
};

class RunReplayer {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  // All outlive the replayer.
  struct Surroundings {
    Holdings* held;
    const CallContext* call;
    PersistentMemory* memory;
    SessionLife* life;
    LaunchSource* source;
    LaunchServer* server;
    ipc::SessionPage* page;
    const std::byte* chunks;  // the session's chunk area
    absl::Duration patience = kPatience;
  };
  explicit RunReplayer(const Surroundings& around)
      : around_(around),
        scratch_(around.held, around.call, around.memory),
        orders_({around.chunks, ipc::limits::kChunkAreaBytes}, &scratch_),
        runs_(*around.held->environment.driver, around.source, &orders_) {}
  RunReplayer(const RunReplayer&) = delete;

  // As LaunchRuns::TryUntrusted. `verify`: the client wants the run executed both ways.
  LaunchRuns::Replayed TryUntrusted(uint32_t place, std::span<const std::byte> messages, int device,
                                    bool verify);
  // Serves the calls by which the client says in which order the launches of a run may be done.
  LaunchOrders* orders() { return &orders_; }
  // All graphs and orders go, before the session's memory does. REQUIRES: the device has finished
  // with them.
  void Clear() {
    runs_.Clear();
    orders_.Clear();
    scratch_.Forget();
  }

 private:
  bool MayVerify(std::span<const std::byte> messages) const;
  // True when kernels may find an address of pinned memory in device memory or in a constant.
  bool MayReachPinned(const SessionBytes& before) const;
  LaunchRuns::Replayed Verify(uint32_t place, std::span<const std::byte> messages,
                              const SessionBytes& before, LaunchRuns::Replayed replayed,
                              int device);
  // Nothing: the session's work does not end, has failed, or its memory can't be saved.
  std::optional<SessionBytes> SaveAfterWork(int device);
  CUresult DoSingly(std::span<const std::byte> messages);
  // The name of the kernel, fill or copy that wrote this byte last. REQUIRES: memory is as before
  // the run; it is as after the run when this returns.
  std::string_view NameWriter(std::span<const std::byte> messages, uint64_t address, int device);
  void Tell(std::string_view kernel);

  const Surroundings around_;
  SessionScratch scratch_;
  LaunchOrders orders_;
  LaunchRuns runs_;
};

}  // namespace worker

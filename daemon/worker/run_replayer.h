// Replays runs of launches. A run that the client wants verified is executed both ways, as a graph
// and one by one, on the same memory, and every byte of the session's device memory is compared
// afterwards. The results of single launches are those that stay.
//
// A run that may touch anything else is replayed without being verified: pinned host memory, which
// the program may write in the meantime, variables of modules, more memory than
// limits::kVerifyBytesMax, several devices. The page counts what was verified. At a difference the
// page names the kernel that wrote the first byte that differs, and the run is served launch by
// launch from then on.
// Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "daemon/worker/holdings.h"
#include "daemon/worker/launch_orders.h"
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/session_bytes.h"
#include "daemon/worker/session_life.h"
#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace worker {

// The session's calls, as the replayer needs them.
class LaunchServer {
 public:
  virtual ~LaunchServer() = default;
  // Serves one Launch message.
  virtual CUresult LaunchUntrusted(std::span<const std::byte> message) = 0;
};

class RunReplayer {
 public:
  // All outlive the replayer.
  struct Surroundings {
    Holdings* held;
    SessionLife* life;
    LaunchSource* source;
    LaunchServer* server;
    ipc::SessionPage* page;
    const std::byte* chunks;  // the session's chunk area
  };
  explicit RunReplayer(const Surroundings& around)
      : around_(around),
        orders_({around.chunks, ipc::limits::kChunkAreaBytes}),
        runs_(*around.held->environment.driver, around.source, &orders_) {}
  RunReplayer(const RunReplayer&) = delete;

  // As LaunchRuns::TryUntrusted. `verify`: the client wants the run executed both ways.
  LaunchRuns::Replayed TryUntrusted(uint32_t place, std::span<const std::byte> messages, int device,
                                    bool verify);
  // Serves the calls by which the client says in which order the launches of a run may be done.
  LaunchOrders* orders() { return &orders_; }
  // All graphs go. REQUIRES: the device has finished with them.
  void Clear() { runs_.Clear(); }

 private:
  bool MayVerify(std::span<const std::byte> messages) const;
  LaunchRuns::Replayed Verify(uint32_t place, std::span<const std::byte> messages,
                              const SessionBytes& before, LaunchRuns::Replayed replayed,
                              int device);
  std::optional<SessionBytes> SaveAfterWork(int device);
  CUresult LaunchSingly(std::span<const std::byte> messages);
  // The name of the kernel that wrote this byte last. REQUIRES: memory is as before the run; it is
  // as after the run when this returns.
  std::string_view NameWriter(std::span<const std::byte> messages, uint64_t address, int device);
  void Tell(std::string_view kernel);

  const Surroundings around_;
  LaunchOrders orders_;
  LaunchRuns runs_;
};

}  // namespace worker

// Replays runs of launches, and executes some both ways, as a graph and one by one, on the same
// memory, and compares every byte of the session's device memory afterwards. The results of single
// launches are those that stay.
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
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/session_bytes.h"
#include "daemon/worker/session_life.h"
#include "ipc/session_file.h"

namespace worker {

// The session's calls, as the verifier needs them.
class LaunchServer {
 public:
  virtual ~LaunchServer() = default;
  // Serves one Launch message.
  virtual CUresult LaunchUntrusted(std::span<const std::byte> message) = 0;
};

class RunVerifier {
 public:
  // All outlive the verifier.
  struct Surroundings {
    Holdings* held;
    SessionLife* life;
    const LaunchOrders* orders;
    LaunchSource* source;
    LaunchServer* server;
    ipc::SessionPage* page;
  };
  explicit RunVerifier(const Surroundings& around)
      : around_(around), runs_(*around.held->environment.driver, around.source, around.orders) {}
  RunVerifier(const RunVerifier&) = delete;

  // As LaunchRuns::TryUntrusted. `verify`: the client wants the run executed both ways.
  LaunchRuns::Replayed TryUntrusted(uint32_t place, std::span<const std::byte> messages, int device,
                                    bool verify);
  // All graphs go. REQUIRES: the device has finished with them.
  void Clear() { runs_.Clear(); }

 private:
  bool MayVerify(std::span<const std::byte> messages) const;
  std::optional<SessionBytes> SaveAfterWork(int device);
  CUresult LaunchSingly(std::span<const std::byte> messages);
  // The name of the kernel that wrote this byte last. REQUIRES: memory is as before the run; it is
  // as after the run when this returns.
  std::string_view NameWriter(std::span<const std::byte> messages, uint64_t address, int device);
  void Tell(std::string_view kernel);

  LaunchRuns::Replayed Verify(uint32_t place, std::span<const std::byte> messages,
                              const SessionBytes& before, LaunchRuns::Replayed replayed,
                              int device);

  const Surroundings around_;
  LaunchRuns runs_;
};

}  // namespace worker

#include "shim/connection.h"

#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/stderr_once.h"
#include "shim/zmq_plugin.h"

namespace shim {
namespace {

using ipc::limits::kDeviceArenaBytes;
using ipc::limits::kPinnedWindowBytes;
using ipc::limits::kSlotBase;
using ipc::limits::kSlotBytes;

void* MapFixed(uint64_t address, uint64_t bytes, int flags, int fd) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
              flags | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
}

// Takes the slot's addresses, so that nothing of the program can lie where a device address points.
bool ReserveSlot(uint32_t slot, int pinned_fd, bool* has_pinned_window) {
  const uint64_t base = kSlotBase + slot * kSlotBytes;
  void* const arena = MapFixed(base, kDeviceArenaBytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (arena != reinterpret_cast<void*>(base)) return false;
  *has_pinned_window = pinned_fd >= 0;
  const uint64_t window = base + kDeviceArenaBytes;
  void* const pinned = pinned_fd >= 0
                           ? MapFixed(window, kPinnedWindowBytes, MAP_SHARED, pinned_fd)
                           : MapFixed(window, kPinnedWindowBytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return pinned == reinterpret_cast<void*>(window);
}

}  // namespace

std::unique_ptr<Connection> Adopt(const ipc::Welcome& welcome, int session_fd, int pinned_fd,
                                  ConnectError* error) {
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session_fd);
  if (!file.ok()) {
    *error = {FromStatus(file.status()), std::string(file.status().message())};
    return nullptr;
  }
  std::unique_ptr<Connection> connection = std::make_unique<Connection>();
  connection->welcome = welcome;
  connection->file = std::make_unique<ipc::SessionFile>(std::move(*file));
  connection->worker = Liveness(static_cast<pid_t>(welcome.worker_pid));
  if (welcome.slot >= ipc::limits::kSlots ||
      !ReserveSlot(welcome.slot, pinned_fd, &connection->has_pinned_window)) {
    *error = {
        CUDA_ERROR_OPERATING_SYSTEM,
        absl::StrCat("the addresses of slot ", welcome.slot,
                     " are taken in this process or its address space is limited (ulimit -v)")};
    return nullptr;
  }
  if (welcome.zmq_endpoint[0] == '\0') {
    connection->channel = connection->file->ClientChannel();
    return connection;
  }
  absl::StatusOr<ipc::Channel> channel =
      ConnectZmq(welcome.zmq_endpoint, connection->file->page()->call_token);
  if (!channel.ok()) {
    *error = {FromStatus(channel.status()), std::string(channel.status().message())};
    return nullptr;
  }
  connection->channel = std::move(*channel);
  return connection;
}

std::unique_ptr<Connection> Connect(ConnectError* error) {
  Welcomed welcomed;
  if (!SayHello(MakeHello(), &welcomed, error)) return nullptr;
  welcomed.socket.Release();  // stays open as long as the program wants: its end alone ends nothing
  return Adopt(welcomed.welcome, welcomed.fds[0].get(),
               welcomed.fds.size() > 1 ? welcomed.fds[1].get() : -1, error);
}

}  // namespace shim

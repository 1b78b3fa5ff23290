#include "shim/connection.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ipc/environment.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "shim/say.h"
#include "shim/zmq_plugin.h"

namespace shim {
namespace {

using ipc::limits::kDeviceArenaBytes;
using ipc::limits::kPinnedWindowBytes;
using ipc::limits::kSlotBase;
using ipc::limits::kSlotBytes;

constexpr int64_t kWelcomeTimeoutUs =
    30'000'000;  // a first session waits for keeper and worker to start

template <size_t N>
void CopyText(char (&to)[N], std::string_view from) {
  const size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

ipc::Hello MakeHello() {
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  const char* const transport = std::getenv(ipc::kTransportVariable);
  if (transport != nullptr && std::strcmp(transport, "zmq") == 0)
    hello.transport = ipc::Transport::kZmq;
  const char* const mode = std::getenv(ipc::kModeVariable);
  if (mode != nullptr && std::strcmp(mode, "contained") == 0) hello.mode = ipc::Mode::kContained;
  if (const char* const job = std::getenv(ipc::kJobVariable); job != nullptr) {
    hello.job_id = std::strtoull(job, nullptr, 10);
  }
  if (const char* const memory = std::getenv(ipc::kMemoryVariable); memory != nullptr) {
    hello.memory_limit_bytes = std::strtoull(memory, nullptr, 10);
  }
  CopyText(hello.program, program_invocation_short_name);
  CopyText(hello.version, LANEWAY_VERSION);
  return hello;
}

std::string NoDaemonSentence(const std::string& dir, const absl::Status& status) {
  return absl::StrCat("no daemon answers in ", dir, " (", std::string(status.message()),
                      "); start the program with `laneway run -- PROGRAM`, which starts one");
}

// Sends the hello and takes the answer with its descriptors.
absl::Status Greet(const std::string& dir, ipc::Welcome* welcome, std::vector<ipc::UniqueFd>* fds) {
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::HelloSocketPath(dir));
  if (!socket.ok()) return socket.status();
  const ipc::Hello hello = MakeHello();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&hello);
  if (absl::Status sent = ipc::SendPacket(socket->get(), {bytes, sizeof hello}); !sent.ok())
    return sent;
  absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(socket->get(), kWelcomeTimeoutUs);
  if (!packet.ok()) return packet.status();
  // magic, protocol_version and bytes keep their places: an older or newer daemon can still be told
  // apart.
  constexpr size_t kFixedBytes = 3 * sizeof(uint32_t);
  if (packet->bytes.size() < kFixedBytes)
    return absl::InvalidArgumentError("the daemon's answer is cut");
  std::memcpy(welcome, packet->bytes.data(), std::min(packet->bytes.size(), sizeof *welcome));
  if (welcome->magic != ipc::kHelloMagic || welcome->protocol_version != ipc::kProtocolVersion ||
      packet->bytes.size() != sizeof *welcome) {
    return absl::FailedPreconditionError(
        absl::StrCat("the daemon speaks protocol ", welcome->protocol_version,
                     ", this program's Laneway ", ipc::kProtocolVersion,
                     "; stop the daemon (`laneway stop`) and run both from one installation"));
  }
  if (welcome->result == 0 && !ipc::Understands(welcome->tables)) {
    return absl::FailedPreconditionError(
        "the daemon and this program's Laneway know different calls; stop the daemon (`laneway "
        "stop`) and run both from one installation");
  }
  *fds = std::move(packet->fds);
  socket->Release();  // stays open as long as the program wants: its end alone ends nothing
  return absl::OkStatus();
}

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
  absl::StatusOr<ipc::Channel> channel = ConnectZmq(welcome.zmq_endpoint);
  if (!channel.ok()) {
    *error = {FromStatus(channel.status()), std::string(channel.status().message())};
    return nullptr;
  }
  connection->channel = std::move(*channel);
  return connection;
}

std::unique_ptr<Connection> Connect(ConnectError* error) {
  const std::string dir = ipc::RuntimeDir();
  absl::Status status = ipc::CheckRuntimeDir(dir);
  ipc::Welcome welcome;
  std::vector<ipc::UniqueFd> fds;
  if (absl::IsFailedPrecondition(
          status)) {  // someone else's directory: whoever owns it could be the daemon
    *error = {CUDA_ERROR_NOT_PERMITTED, std::string(status.message())};
    return nullptr;
  }
  if (status.ok()) status = Greet(dir, &welcome, &fds);
  if (!status.ok()) {
    const CUresult code = FromStatus(status);
    *error = {code, code == CUDA_ERROR_MPS_CONNECTION_FAILED ? NoDaemonSentence(dir, status)
                                                             : std::string(status.message())};
    return nullptr;
  }
  if (welcome.result != CUDA_SUCCESS) {
    welcome.sentence[sizeof welcome.sentence - 1] = '\0';
    *error = {static_cast<CUresult>(welcome.result), welcome.sentence};
    return nullptr;
  }
  if (fds.empty()) {
    *error = {CUDA_ERROR_MPS_RPC_FAILURE, "the daemon sent no session file"};
    return nullptr;
  }
  welcome.zmq_endpoint[sizeof welcome.zmq_endpoint - 1] = '\0';
  return Adopt(welcome, fds[0].get(), fds.size() > 1 ? fds[1].get() : -1, error);
}

}  // namespace shim

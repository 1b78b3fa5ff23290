#include "shim/hello_client.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ipc/environment.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

constexpr int64_t kWelcomeTimeoutUs =
    30'000'000;                           // a first session waits for keeper and worker to start
constexpr int64_t kSilentUs = 2'000'000;  // who waits for longer says why
constexpr int64_t kNextDaemonNs = 30'000'000'000;  // for the daemon after the one that queued us
constexpr absl::Duration kNextDaemonStep = absl::Milliseconds(50);

template <size_t N>
void CopyText(char (&to)[N], std::string_view from) {
  const size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

std::string NoDaemonSentence(const std::string& dir, const absl::Status& status) {
  return absl::StrCat("no daemon answers in ", dir, " (", std::string(status.message()),
                      "); start the program with `laneway run -- PROGRAM`, which starts one");
}

absl::Status TakeWelcome(int socket, int64_t timeout_us, Welcomed* welcomed) {
  ipc::Welcome* const welcome = &welcomed->welcome;
  absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(socket, timeout_us);
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
  welcomed->fds = std::move(packet->fds);
  return absl::OkStatus();
}

// For as long as it takes: the socket ends with the daemon.
absl::Status AwaitAdmission(int socket, Welcomed* welcomed) {
  static std::atomic<bool> said;
  welcomed->welcome.sentence[sizeof welcomed->welcome.sentence - 1] = '\0';
  const std::string reason = welcomed->welcome.sentence;
  absl::Status taken = TakeWelcome(socket, kSilentUs, welcomed);
  while (absl::IsDeadlineExceeded(taken)) {
    StderrOnce(said, {"this program ", reason, "; `laneway ps` lists who runs"});
    taken = TakeWelcome(socket, kWelcomeTimeoutUs, welcomed);
  }
  return taken;
}

// Sends the hello and takes the answer with its descriptors.
absl::Status Exchange(const std::string& dir, const ipc::Hello& hello, Welcomed* welcomed,
                      bool* queued) {
  *welcomed = Welcomed();
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::HelloSocketPath(dir));
  if (!socket.ok()) return socket.status();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&hello);
  if (absl::Status sent = ipc::SendPacket(socket->get(), {bytes, sizeof hello}); !sent.ok())
    return sent;
  absl::Status taken = TakeWelcome(socket->get(), kWelcomeTimeoutUs, welcomed);
  *queued = taken.ok() && welcomed->welcome.queued != 0;
  if (*queued) taken = AwaitAdmission(socket->get(), welcomed);
  if (taken.ok()) welcomed->socket = std::move(*socket);
  return taken;
}

bool LacksDaemon(const absl::Status& status) {
  return FromStatus(status) == CUDA_ERROR_MPS_CONNECTION_FAILED;
}

// A daemon that dies knows who runs, and the next one finds them; of who is not admitted yet it
// hears from themselves.
absl::Status ExchangeWithSome(const std::string& dir, const ipc::Hello& hello, Welcomed* welcomed) {
  static std::atomic<bool> said;
  bool queued = false;
  absl::Status status = Exchange(dir, hello, welcomed, &queued);
  while (queued && !status.ok() && LacksDaemon(status)) {
    StderrOnce(said,
               {"lanewayd ended before it admitted this program, which waits for the next one "
                "for 30 s"});
    const int64_t end_ns = ipc::MonotonicNs() + kNextDaemonNs;
    for (queued = false; LacksDaemon(status) && !queued && ipc::MonotonicNs() < end_ns;) {
      absl::SleepFor(kNextDaemonStep);
      status = Exchange(dir, hello, welcomed, &queued);
    }
  }
  return status;
}

}  // namespace

ipc::Hello MakeHello() {
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  const char* const transport = std::getenv(ipc::kTransportVariable);
  if (transport != nullptr && std::strcmp(transport, "zmq") == 0)
    hello.transport = ipc::Transport::kZmq;
  const char* const mode = std::getenv(ipc::kModeVariable);
  if (mode != nullptr && std::strcmp(mode, "contained") == 0) hello.mode = ipc::Mode::kContained;
  if (mode != nullptr && std::strcmp(mode, "in-process") == 0) hello.mode = ipc::Mode::kInProcess;
  if (const char* const job = std::getenv(ipc::kJobVariable); job != nullptr) {
    hello.job = ipc::ParseTicketUntrusted(job).value_or(ipc::JobTicket());
  }
  CopyText(hello.program, program_invocation_short_name);
  CopyText(hello.version, LANEWAY_VERSION);
  return hello;
}

bool SayHello(const ipc::Hello& hello, Welcomed* welcomed, ConnectError* error) {
  const std::string dir = ipc::RuntimeDir();
  absl::Status status = ipc::CheckRuntimeDir(dir);
  if (absl::IsFailedPrecondition(
          status)) {  // someone else's directory: whoever owns it could be the daemon
    *error = {CUDA_ERROR_NOT_PERMITTED, std::string(status.message())};
    return false;
  }
  if (status.ok()) status = ExchangeWithSome(dir, hello, welcomed);
  if (!status.ok()) {
    const CUresult code = FromStatus(status);
    *error = {code, code == CUDA_ERROR_MPS_CONNECTION_FAILED ? NoDaemonSentence(dir, status)
                                                             : std::string(status.message())};
    return false;
  }
  ipc::Welcome& welcome = welcomed->welcome;
  if (welcome.result != CUDA_SUCCESS) {
    welcome.sentence[sizeof welcome.sentence - 1] = '\0';
    *error = {static_cast<CUresult>(welcome.result), welcome.sentence};
    return false;
  }
  if (welcomed->fds.empty()) {
    *error = {CUDA_ERROR_MPS_RPC_FAILURE, "the daemon sent no session file"};
    return false;
  }
  welcome.zmq_endpoint[sizeof welcome.zmq_endpoint - 1] = '\0';
  return true;
}

}  // namespace shim

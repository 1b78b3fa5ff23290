#include "shim/hello_client.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ipc/environment.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "shim/next_daemon.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

// A first session waits for keeper and worker to start.
constexpr int64_t kWelcomeTimeoutUs = 30'000'000;
// A program that is not admitted for so long says why on stderr.
constexpr int64_t kSilentUs = 2'000'000;
// How long a program waits for the daemon after the one that queued it.
constexpr int64_t kNextDaemonNs = 30'000'000'000;

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

// Waits until the daemon admits or refuses this program, without a limit: when the daemon ends, the
// socket ends, and this returns Unavailable.
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

// Sends the hello and takes the answer with its descriptors. *queued: the daemon did not admit the
// program at once; it may have ended since.
absl::Status Exchange(const std::string& dir, const ipc::Hello& hello, Welcomed* welcomed,
                      bool* queued) {
  *welcomed = Welcomed();
  *queued = false;
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

// Says hello to the daemon that starts next, within kNextDaemonNs. The watch begins before the
// first hello, so a daemon that starts between the two is not missed.
absl::Status ExchangeWithNext(const std::string& dir, const ipc::Hello& hello, Welcomed* welcomed,
                              bool* queued) {
  NextDaemon next(dir);
  const int64_t end_ns = ipc::MonotonicNs() + kNextDaemonNs;
  for (;;) {
    const absl::Status status = Exchange(dir, hello, welcomed, queued);
    const int64_t left_us = (end_ns - ipc::MonotonicNs()) / 1000;
    if (!LacksDaemon(status) || *queued || left_us <= 0) return status;
    (void)next.Wait(std::min(left_us, NextDaemon::kLookAgainUs));
  }
}

// Says hello again while daemons end before they admit this program. The next daemon finds the
// running sessions by itself, but it knows of a queued program only when that says hello again.
absl::Status ExchangeWithSome(const std::string& dir, const ipc::Hello& hello, Welcomed* welcomed) {
  static std::atomic<bool> said;
  bool queued = false;
  absl::Status status = Exchange(dir, hello, welcomed, &queued);
  while (queued && !status.ok() && LacksDaemon(status)) {
    StderrOnce(said,
               {"lanewayd ended before it admitted this program, which waits for the next one "
                "for 30 s"});
    status = ExchangeWithNext(dir, hello, welcomed, &queued);
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

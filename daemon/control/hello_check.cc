#include "ipc/calls/vendor.h"

#include "daemon/control/hello_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ipc/control.h"
#include "ipc/socket.h"

namespace control {
namespace {

constexpr size_t kFixedBytes =
    3 * sizeof(uint32_t);  // magic, version, bytes: the same in all versions

}  // namespace

uint64_t Believed(const HeldClaim& claim) {
  const uint64_t others = claim.used_bytes - std::min(claim.used_bytes, claim.counted_bytes);
  const uint64_t possible = claim.capacity_bytes - std::min(claim.capacity_bytes, others);
  const uint64_t allowed =
      claim.limit_bytes == 0 ? possible : std::max(claim.limit_bytes, claim.counted_bytes);
  return std::min({claim.claimed_bytes, possible, allowed});
}

void Refuse(ipc::Welcome* welcome, unsigned code, const std::string& sentence) {
  welcome->result = code;
  ipc::control::SetText(welcome->sentence, sentence);
}

bool CheckHelloUntrusted(std::span<const std::byte> bytes, uid_t peer, uid_t owner,
                         ipc::Hello* hello, ipc::Welcome* welcome) {
  if (peer != owner) {
    Refuse(welcome, CUDA_ERROR_NOT_PERMITTED,
           absl::StrCat("this daemon serves uid ", owner, " and the program runs as uid ", peer,
                        "; run it as that user or start a daemon of your own"));
    return false;
  }
  uint32_t fixed[3] = {};
  if (bytes.size() >= kFixedBytes) std::memcpy(fixed, bytes.data(), kFixedBytes);
  if (fixed[0] != ipc::kHelloMagic) {
    Refuse(welcome, CUDA_ERROR_MPS_RPC_FAILURE, "what connected is not a Laneway client");
    return false;
  }
  if (fixed[1] != ipc::kProtocolVersion || fixed[2] != sizeof(ipc::Hello) ||
      bytes.size() != sizeof(ipc::Hello)) {
    Refuse(welcome, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
           absl::StrCat("the program's Laneway speaks protocol version ", fixed[1],
                        ", this daemon (", LANEWAY_VERSION, ") version ", ipc::kProtocolVersion,
                        "; run laneway stop, then start both from one installation"));
    return false;
  }
  std::memcpy(hello, bytes.data(), sizeof *hello);
  hello->program[sizeof hello->program - 1] = '\0';
  hello->version[sizeof hello->version - 1] = '\0';
  if (!ipc::Understands(hello->tables)) {
    Refuse(
        welcome, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
        absl::StrCat("the program's Laneway ", hello->version, " and this daemon ", LANEWAY_VERSION,
                     " know different calls; run laneway stop, then start "
                     "both from one installation"));
    return false;
  }
  const bool transport_known =
      hello->transport == ipc::Transport::kRing || hello->transport == ipc::Transport::kZmq;
  if (!transport_known ||
      (hello->mode != ipc::Mode::kShared && hello->mode != ipc::Mode::kContained &&
       hello->mode != ipc::Mode::kInProcess)) {
    Refuse(welcome, CUDA_ERROR_NOT_SUPPORTED,
           "the program asks for a transport or mode that this daemon does not "
           "have; use "
           "--mode=shared, contained or in-process");
    return false;
  }
  return true;
}

void TellRefused(const Session& session, unsigned code, const std::string& sentence) {
  ipc::Welcome welcome;
  Refuse(&welcome, code, sentence);
  spdlog::info("session {} ({}) is refused: {}", session.record.session_id, session.record.program,
               welcome.sentence);
  if (session.socket.valid()) (void)ipc::SendPacket(session.socket.get(), BytesOf(welcome));
}

void TellQueued(const Session& session, const std::string& reason) {
  if (!session.socket.valid()) return;
  ipc::Welcome welcome;
  welcome.session_id = session.record.session_id;
  welcome.queued = 1;
  welcome.tables = ipc::OwnTables();
  ipc::control::SetText(welcome.sentence, reason);
  (void)ipc::SendPacket(session.socket.get(), BytesOf(welcome));
}

}  // namespace control

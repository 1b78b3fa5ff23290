#include "ipc/calls/vendor.h"

#include "daemon/control/pending_hellos.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/hello_check.h"
#include "ipc/runtime_dir.h"

namespace control {

PendingHellos::PendingHellos(common::EventLoop* loop, OnHello on_hello)
    : loop_(loop), on_hello_(std::move(on_hello)), acceptor_(loop) {}

absl::Status PendingHellos::Listen(const std::string& runtime_dir) {
  absl::StatusOr<ipc::UniqueFd> socket = ipc::ListenAt(ipc::HelloSocketPath(runtime_dir));
  if (!socket.ok()) return socket.status();
  acceptor_.Listen(
      std::move(*socket), [this](ipc::UniqueFd connection) { Add(std::move(connection)); },
      [](const std::string& sentence) { spdlog::warn("{}; raise ulimit -n", sentence); });
  return absl::OkStatus();
}

void PendingHellos::Add(ipc::UniqueFd socket) {
  if (pending_.size() >= kConnectionsMax) {
    const auto older = [](const std::pair<const int, Pending>& a,
                          const std::pair<const int, Pending>& b) {
      return a.second.number < b.second.number;
    };
    (void)Remove(std::min_element(pending_.begin(), pending_.end(), older)->first);
  }
  const int fd = socket.get();
  Pending& pending = pending_[fd];
  pending.socket = std::move(socket);
  pending.number = ++added_;
  pending.timer = loop_->After(kHelloTimeoutUs, [this, fd] { (void)Remove(fd); });
  loop_->Watch(fd, [this, fd] { OnReadable(fd); });
}

ipc::UniqueFd PendingHellos::Remove(int fd) {
  const std::map<int, Pending>::iterator found = pending_.find(fd);
  loop_->Cancel(found->second.timer);
  loop_->Unwatch(fd);
  ipc::UniqueFd socket = std::move(found->second.socket);
  pending_.erase(found);
  return socket;
}

void PendingHellos::OnReadable(int fd) {
  if (pending_.count(fd) == 0) return;
  const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(fd, 0);
  if (absl::IsDeadlineExceeded(packet.status())) return;
  ipc::UniqueFd socket = Remove(fd);
  const absl::StatusOr<ipc::Peer> peer = ipc::PeerOf(fd);
  if (!packet.ok() || !peer.ok()) return;
  ipc::Hello hello;
  ipc::Welcome welcome;
  absl::StatusOr<ipc::UniqueFd> pidfd = ipc::PeerPidfd(fd, *peer);
  if (CheckHelloUntrusted(packet->bytes, peer->uid, geteuid(), &hello, &welcome) && !pidfd.ok()) {
    Refuse(&welcome, CUDA_ERROR_NOT_PERMITTED,
           absl::StrCat("the program can't be watched (", std::string(pidfd.status().message()),
                        "); run it in the daemon's pid namespace"));
  }
  if (stopping_) Refuse(&welcome, CUDA_ERROR_MPS_CONNECTION_FAILED, "the daemon is stopping");
  if (welcome.result == 0) {
    on_hello_(hello, *peer, std::move(socket), std::move(*pidfd));
    return;
  }
  spdlog::info("pid {} is refused: {}", peer->pid, welcome.sentence);
  (void)ipc::SendPacket(fd, BytesOf(welcome));
}

}  // namespace control

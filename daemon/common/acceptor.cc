#include "daemon/common/acceptor.h"

#include <utility>

#include "ipc/socket.h"

namespace common {

void Acceptor::Listen(ipc::UniqueFd listener, OnConnection connected, OnFailure failed) {
  listener_ = std::move(listener);
  connected_ = std::move(connected);
  failed_ = std::move(failed);
  loop_->Watch(listener_.get(), [this] { Accept(); });
}

void Acceptor::Close() {
  if (!listener_.valid()) return;
  if (pause_ != 0) loop_->Cancel(std::exchange(pause_, 0));
  loop_->Unwatch(listener_.get());
  listener_.Reset();
}

void Acceptor::Accept() {
  absl::StatusOr<ipc::UniqueFd> accepted = ipc::Accept(listener_.get());
  if (accepted.ok()) {
    failing_ = false;
    connected_(std::move(*accepted));
    return;
  }
  if (!absl::IsResourceExhausted(accepted.status())) return;  // it went away again
  if (!std::exchange(failing_, true)) failed_(std::string(accepted.status().message()));
  loop_->Unwatch(listener_.get());
  pause_ = loop_->After(kPauseUs, [this] {
    pause_ = 0;
    loop_->Watch(listener_.get(), [this] { Accept(); });
  });
}

}  // namespace common

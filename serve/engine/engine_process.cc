#include "serve/engine/engine_process.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace serve::engine {

absl::StatusOr<std::unique_ptr<EngineProcess>> EngineProcess::Start(
    EventLoop* loop, const std::vector<std::string>& command, std::span<const Descriptor> passed,
    size_t number, Client* client) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(command, passed);
  if (!child.ok()) return child.status();
  return std::unique_ptr<EngineProcess>(new EngineProcess(loop, *std::move(child), number, client));
}

EngineProcess::EngineProcess(EventLoop* loop, ChildProcess child, size_t number, Client* client)
    : loop_(*loop), child_(std::move(child)), number_(number), client_(*client) {
  loop_.AddDescriptor(child_.pidfd(), POLLIN, [this](short) { OnPidfd(); });
  WatchSocket();
}

EngineProcess::~EngineProcess() {
  loop_.RemoveDescriptor(child_.socket());
  loop_.RemoveDescriptor(child_.pidfd());
}

void EngineProcess::WatchSocket() {
  const short wanted = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  loop_.AddDescriptor(child_.socket(), wanted, [this](short seen) { OnSocket(seen); });
}

void EngineProcess::Send(std::span<const std::byte> body) {
  if (!connected_) return;
  const bool watched = !unsent_.empty();
  AppendFrame(body, &unsent_);
  if (!watched) WriteSocket();
}

// An end that is seen here is dealt with where the socket is read.
void EngineProcess::WriteSocket() {
  const ssize_t sent =
      send(child_.socket(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) unsent_.clear();
  WatchSocket();
}

void EngineProcess::OnSocket(short seen) {
  if ((seen & POLLOUT) != 0) WriteSocket();
  if ((seen & ~POLLOUT) != 0) ReadSocket();
}

void EngineProcess::ReadSocket() {
  std::array<std::byte, 64u << 10> room;
  const ssize_t got = recv(child_.socket(), room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return client_.OnSilent(number_, "");
  reader_.AddUntrusted(std::span(room).first(static_cast<size_t>(got)));
  while (connected_) {
    const std::optional<Bytes> frame = reader_.Take();
    if (!frame.has_value()) break;
    client_.OnFrameUntrusted(number_, *frame);
  }
  if (connected_ && reader_.IsBroken())
    client_.OnSilent(number_, "the engine sends no frames of this protocol");
}

// The process's end is told when it has come: the kernel may still be freeing its memory.
void EngineProcess::GiveUp() {
  if (!connected_) return;
  connected_ = false;
  loop_.RemoveDescriptor(child_.socket());
  child_.Kill();
}

void EngineProcess::OnPidfd() {
  // The engine's last frames still lie in the socket.
  for (int reads = 0; connected_ && reads < 64; ++reads) ReadSocket();
  GiveUp();
  loop_.RemoveDescriptor(child_.pidfd());
  client_.OnEnded(number_, child_.Reap());
}

}  // namespace serve::engine

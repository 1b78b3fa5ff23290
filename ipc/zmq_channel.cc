#include "ipc/zmq_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/unique_fd.h"

namespace ipc {
namespace {

constexpr int kMessagesQueuedMax = 512;    // each way; then the sender waits, as with a full ring
constexpr size_t kIdentityBytesMax = 256;  // a longer one is no peer's of ours

// One context per process, never ended: ending it would wait for peers.
void* Context() {
  static void* const context = zmq_ctx_new();
  return context;
}

class Socket {
 public:
  Socket(bool bind, const std::string& endpoint, const CallToken& token, absl::Status* status);
  ~Socket() {
    if (socket_ != nullptr) zmq_close(socket_);
    UnlinkEndpoint(bound_);
  }

  bool WaitWritable(int64_t timeout_us) { return Wait(ZMQ_POLLOUT, timeout_us); }
  bool Send(const std::byte* bytes, size_t count);
  // 0: nothing there. Negative: a message of a length that none can have.
  int Receive(std::byte* to, size_t room);
  bool WaitReadable(int64_t timeout_us) { return Wait(ZMQ_POLLIN, timeout_us); }

 private:
  bool Wait(int event, int64_t timeout_us);
  int Events() REQUIRES(mutex_);
  void TellReceiver() REQUIRES(mutex_);
  bool ReceiveIdentity() REQUIRES(mutex_);

  const bool is_router_;
  const std::string bound_;  // empty on the connecting side
  void* socket_ GUARDED_BY(mutex_) = nullptr;
  int descriptor_ = -1;  // ZMQ_FD: readable when the socket's events may have changed
  UniqueFd nudge_;       // the sender saw input while the receiver may be waiting
  base::Mutex mutex_;
  const CallToken token_;  // the client's identity
};

Socket::Socket(bool bind, const std::string& endpoint, const CallToken& token, absl::Status* status)
    : is_router_(bind),
      bound_(bind ? endpoint : ""),
      nudge_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      token_(token) {
  socket_ = zmq_socket(Context(), bind ? ZMQ_ROUTER : ZMQ_DEALER);
  if (socket_ == nullptr) {
    *status = absl::UnavailableError(absl::StrCat("zmq_socket: ", zmq_strerror(zmq_errno())));
    return;
  }
  const int high_water = kMessagesQueuedMax, linger_ms = 1000, on = 1;
  const int64_t message_bytes_max = limits::kMessageBytesMax;
  zmq_setsockopt(socket_, ZMQ_SNDHWM, &high_water, sizeof high_water);
  zmq_setsockopt(socket_, ZMQ_RCVHWM, &high_water, sizeof high_water);
  zmq_setsockopt(socket_, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
  zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &message_bytes_max, sizeof message_bytes_max);
  if (is_router_) {
    zmq_setsockopt(socket_, ZMQ_ROUTER_MANDATORY, &on, sizeof on);
  } else {
    zmq_setsockopt(socket_, ZMQ_ROUTING_ID, token_.data(), token_.size());
  }
  const int result =
      bind ? zmq_bind(socket_, endpoint.c_str()) : zmq_connect(socket_, endpoint.c_str());
  if (bind) MakeEndpointPrivate(endpoint);
  size_t bytes = sizeof descriptor_;
  if (result != 0 || zmq_getsockopt(socket_, ZMQ_FD, &descriptor_, &bytes) != 0) {
    *status = absl::UnavailableError(
        absl::StrCat("cannot use ", endpoint, " for calls: ", zmq_strerror(zmq_errno())));
  }
}

int Socket::Events() {
  int events = 0;
  size_t bytes = sizeof events;
  if (zmq_getsockopt(socket_, ZMQ_EVENTS, &events, &bytes) != 0) return 0;
  return events;
}

// ZMQ_FD tells changes only once, to whoever touches the socket next. When that was the sender, the
// receiver must hear of it another way.
void Socket::TellReceiver() {
  if ((Events() & ZMQ_POLLIN) == 0) return;
  const uint64_t one = 1;
  (void)!write(nudge_.get(), &one, sizeof one);
}

bool Socket::Wait(int event, int64_t timeout_us) {
  const int64_t deadline = MonotonicNs() + timeout_us * 1000;
  for (;;) {
    {
      const base::MutexLock lock(&mutex_);
      uint64_t count = 0;
      if (event == ZMQ_POLLIN) (void)!read(nudge_.get(), &count, sizeof count);
      const int events = Events();
      if ((events & event) != 0) return true;
      if (event == ZMQ_POLLOUT) TellReceiver();
    }
    const int64_t left_ns = deadline - MonotonicNs();
    if (left_ns <= 0) return false;
    // A writer is not nudged: it looks again after a millisecond at most.
    const int64_t wait_ns = event == ZMQ_POLLIN ? left_ns : std::min<int64_t>(left_ns, 1'000'000);
    const timespec timeout{static_cast<time_t>(wait_ns / 1'000'000'000),
                           static_cast<long>(wait_ns % 1'000'000'000)};
    pollfd entries[2] = {{descriptor_, POLLIN, 0}, {nudge_.get(), POLLIN, 0}};
    ppoll(entries, event == ZMQ_POLLIN ? 2 : 1, &timeout, nullptr);
  }
}

bool Socket::Send(const std::byte* bytes, size_t count) {
  const base::MutexLock lock(&mutex_);
  if (is_router_) {
    if (zmq_send(socket_, token_.data(), token_.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
      return false;
  }
  const int sent = zmq_send(socket_, bytes, count, ZMQ_DONTWAIT);
  TellReceiver();
  return sent >= 0;
}

// The first frame at a ROUTER names the peer: nobody but the client knows its name.
bool Socket::ReceiveIdentity() {
  std::byte identity[kIdentityBytesMax];
  const int length = zmq_recv(socket_, identity, sizeof identity, ZMQ_DONTWAIT);
  return length == static_cast<int>(token_.size()) &&
         std::memcmp(token_.data(), identity, token_.size()) == 0;
}

int Socket::Receive(std::byte* to, size_t room) {
  const base::MutexLock lock(&mutex_);
  if ((Events() & ZMQ_POLLIN) == 0) return 0;
  const bool known = !is_router_ || ReceiveIdentity();
  const int length = zmq_recv(socket_, to, room, ZMQ_DONTWAIT);
  int more = 0;
  size_t bytes = sizeof more;
  for (;;) {  // a message of ours has one frame; what follows is dropped with it
    zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &bytes);
    if (more == 0) break;
    char rest[1];
    if (zmq_recv(socket_, rest, sizeof rest, ZMQ_DONTWAIT) < 0) break;
  }
  if (!known) return 0;
  if (length < 0) return is_router_ ? -1 : 0;
  return length == 0 || static_cast<size_t>(length) > room ? -1 : length;
}

class ZmqSender : public Sender {
 public:
  explicit ZmqSender(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  std::span<std::byte> Reserve(size_t bytes, int64_t timeout_us) override {
    assert(bytes <= sizeof message_);
    if (!unsent_) return {message_, bytes};
    // The message before this one met a full queue: it goes first.
    if (!Flush(timeout_us)) return {};
    return {message_, bytes};
  }

  void Commit(size_t bytes) override {
    bytes_ = bytes;
    unsent_ = true;
    Flush(0);
  }

 private:
  bool Flush(int64_t timeout_us) {
    const int64_t deadline = MonotonicNs() + timeout_us * 1000;
    while (!socket_->Send(message_, bytes_)) {
      const int64_t left_us = (deadline - MonotonicNs()) / 1000;
      if (left_us <= 0) return false;
      socket_->WaitWritable(std::min<int64_t>(left_us, 1000));
    }
    unsent_ = false;
    return true;
  }

  const std::shared_ptr<Socket> socket_;
  bool unsent_ = false;
  size_t bytes_ = 0;
  alignas(8) std::byte message_[limits::kMessageBytesMax];
};

class ZmqReceiver : public Receiver {
 public:
  explicit ZmqReceiver(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  std::span<const std::byte> NextUntrusted(int64_t spin_us, int64_t timeout_us) override {
    if (peeked_ != 0) return {message_, std::exchange(peeked_, 0)};
    return Take(timeout_us);
  }

  std::span<const std::byte> PeekUntrusted(int64_t spin_us, int64_t timeout_us) override {
    if (peeked_ == 0) peeked_ = Take(timeout_us).size();
    return {message_, peeked_};
  }

  bool Pending() override { return peeked_ != 0 || (!broken_ && socket_->WaitReadable(0)); }

  bool broken() const override { return broken_; }

 private:
  std::span<const std::byte> Take(int64_t timeout_us) {
    if (broken_) return {};
    const int64_t deadline = MonotonicNs() + timeout_us * 1000;
    for (;;) {
      const int length = socket_->Receive(message_, sizeof message_);
      if (length != 0) return Check(length);
      const int64_t left_us = (deadline - MonotonicNs()) / 1000;
      if (left_us <= 0 || !socket_->WaitReadable(left_us)) return {};
    }
  }

  std::span<const std::byte> Check(int length) {
    uint32_t bytes = 0;
    if (length >= static_cast<int>(sizeof(MessageHeader)))
      std::memcpy(&bytes, message_, sizeof bytes);
    if (length < static_cast<int>(sizeof(MessageHeader)) ||
        bytes != static_cast<uint32_t>(length)) {
      broken_ = true;
      return {};
    }
    return {message_, static_cast<size_t>(length)};
  }

  const std::shared_ptr<Socket> socket_;
  bool broken_ = false;
  size_t peeked_ = 0;  // bytes of the message that was looked at and not taken; 0: none
  alignas(8) std::byte message_[limits::kMessageBytesMax];
};

absl::StatusOr<Channel> MakeChannel(bool bind, const std::string& endpoint,
                                    const CallToken& token) {
  absl::Status status;
  const std::shared_ptr<Socket> socket = std::make_shared<Socket>(bind, endpoint, token, &status);
  if (!status.ok()) return status;
  return Channel{std::make_unique<ZmqSender>(socket), std::make_unique<ZmqReceiver>(socket)};
}

}  // namespace

absl::StatusOr<Channel> ConnectZmqChannel(const std::string& endpoint, const CallToken& token) {
  return MakeChannel(false, endpoint, token);
}

absl::StatusOr<Channel> BindZmqChannel(const std::string& endpoint, const CallToken& token) {
  return MakeChannel(true, endpoint, token);
}

}  // namespace ipc

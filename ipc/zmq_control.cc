#include "ipc/zmq_control.h"

#include <zmq.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"

namespace ipc {
namespace {

constexpr int64_t kRequestBytesMax = 64 << 10;  // of each frame
constexpr int kQueuedMax = 64;                  // of each peer, and for it
constexpr size_t kFrames = 3;                   // of a request: whose it is, none, the text
constexpr int64_t kLookMs = 50;                 // how often the other side's end is looked for

absl::Status ZmqError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", zmq_strerror(zmq_errno())));
}

// One frame as text. False: none waits.
bool TakeFrame(void* socket, std::string* text, bool* more) {
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  const bool taken = zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) >= 0;
  if (taken) {
    text->assign(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
    *more = zmq_msg_more(&frame) != 0;
  }
  zmq_msg_close(&frame);
  return taken;
}

// Whether something can be read from `socket`, waiting for it as AskControl does.
bool AwaitReply(void* socket, int64_t timeout_us, const std::function<bool()>& lives) {
  const int64_t deadline = MonotonicNs() + timeout_us * 1000;
  zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
  for (bool last = false;;) {
    const int64_t left_ms = (deadline - MonotonicNs()) / 1'000'000;
    const int64_t wait_ms = last ? 0 : std::clamp<int64_t>(left_ms, 0, kLookMs);
    if (zmq_poll(&item, 1, wait_ms) > 0) return true;
    if (last || left_ms <= 0) return false;
    last = !lives();  // what it said before it ended may have come since
  }
}

}  // namespace

ControlServer::~ControlServer() {
  if (socket_ != nullptr) zmq_close(socket_);
  if (context_ != nullptr) zmq_ctx_term(context_);
  UnlinkEndpoint(endpoint_);
}

absl::Status ControlServer::Bind(const std::string& endpoint) {
  endpoint_ = endpoint;
  context_ = zmq_ctx_new();
  socket_ = zmq_socket(context_, ZMQ_ROUTER);
  const int linger_ms = 500;
  zmq_setsockopt(socket_, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
  zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &kRequestBytesMax, sizeof kRequestBytesMax);
  zmq_setsockopt(socket_, ZMQ_RCVHWM, &kQueuedMax, sizeof kQueuedMax);
  zmq_setsockopt(socket_, ZMQ_SNDHWM, &kQueuedMax, sizeof kQueuedMax);
  size_t bytes = sizeof descriptor_;
  if (zmq_bind(socket_, endpoint.c_str()) != 0 ||
      zmq_getsockopt(socket_, ZMQ_FD, &descriptor_, &bytes) != 0) {
    return ZmqError(absl::StrCat("cannot listen at ", endpoint));
  }
  MakeEndpointPrivate(endpoint);
  return absl::OkStatus();
}

// A REQ peer sends identity, an empty frame and the text; anything else is dropped whole.
bool ControlServer::Next(Request* request) {
  for (;;) {
    std::vector<std::string> frames;
    bool more = true;
    while (more) {
      std::string frame;
      if (!TakeFrame(socket_, &frame, &more)) return false;
      if (frames.size() <= kFrames) frames.push_back(std::move(frame));  // the rest is dropped
    }
    if (frames.size() != kFrames || !frames[1].empty()) continue;
    *request = {std::move(frames[0]), std::move(frames[2])};
    return true;
  }
}

void ControlServer::Reply(const std::string& peer, const std::string& text) {
  zmq_send(socket_, peer.data(), peer.size(), ZMQ_SNDMORE);
  zmq_send(socket_, "", 0, ZMQ_SNDMORE);
  zmq_send(socket_, text.data(), text.size(), 0);
}

absl::StatusOr<std::string> AskControl(const std::string& endpoint, const std::string& text,
                                       int64_t timeout_us, const std::function<bool()>& lives) {
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_REQ);
  const int linger_ms = 0, timeout_ms = static_cast<int>(timeout_us / 1000);
  zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
  zmq_setsockopt(socket, ZMQ_SNDTIMEO, &timeout_ms, sizeof timeout_ms);
  absl::StatusOr<std::string> result = absl::DeadlineExceededError("the daemon does not answer");
  if (zmq_connect(socket, endpoint.c_str()) != 0) {
    result = ZmqError(absl::StrCat("cannot reach ", endpoint));
  } else if (zmq_send(socket, text.data(), text.size(), 0) >= 0 &&
             AwaitReply(socket, timeout_us, lives)) {
    zmq_msg_t reply;
    zmq_msg_init(&reply);
    if (zmq_msg_recv(&reply, socket, ZMQ_DONTWAIT) >= 0) {
      result = std::string(static_cast<const char*>(zmq_msg_data(&reply)), zmq_msg_size(&reply));
    }
    zmq_msg_close(&reply);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  return result;
}

}  // namespace ipc

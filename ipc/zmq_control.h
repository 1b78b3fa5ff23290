// The control plane between people's commands and lanewayd: JSON texts over a ROUTER at
// ipc://$RUNTIME/control.zmq, mode 0600. A process that can open the socket can read the
// directory's key as well, so the file's mode alone admits. daemon/control/command.h defines the
// texts. Thread
// safety: one thread per object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace ipc {

inline constexpr int64_t kControlTextBytesMax = 1 << 20;

class ControlServer {
 public:
  struct Request {
    std::string peer;  // opaque: whom to reply to
    std::string text;
  };

  ControlServer() = default;
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;

  absl::Status Bind(const std::string& endpoint);
  // Readable when there may be something to take. Edge-triggered by ZeroMQ: take until there is
  // nothing, and after every Reply, too.
  int descriptor() const { return descriptor_; }
  // False: nothing waits.
  bool Next(Request* request);
  void Reply(const std::string& peer, const std::string& text);

 private:
  void* context_ = nullptr;
  void* socket_ = nullptr;
  int descriptor_ = -1;
  std::string endpoint_;
};

// One request and its reply. DeadlineExceeded: nobody answered in time, or nobody will, for
// `lives` says that the process behind the endpoint has ended.
absl::StatusOr<std::string> AskControl(
    const std::string& endpoint, const std::string& text, int64_t timeout_us,
    const std::function<bool()>& lives = [] { return true; });

}  // namespace ipc

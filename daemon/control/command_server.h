// People's commands by way of the control plane: parses requests, finds the handler of each, and
// carries answers back. Only the handler of a command knows its meaning.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"
#include "daemon/control/command.h"
#include "ipc/zmq_control.h"

namespace control {

class CommandServer {
 public:
  // Returns the answer.
  using Handler = std::function<std::string(const Command& command)>;
  // Answers `peer` by Reply(), at once or at any later time.
  using LaterHandler = std::function<void(const std::string& peer, const Command& command)>;

  // `loop` outlives this object.
  explicit CommandServer(common::EventLoop* loop) : loop_(loop) {}

  absl::Status Listen(const std::string& endpoint);
  void On(const std::string& name, Handler handler);
  void OnLater(const std::string& name, LaterHandler handler);
  // As if `peer` had sent the command.
  void Do(const std::string& peer, const Command& command);
  void Reply(const std::string& peer, const std::string& text);

 private:
  void TakeRequests();
  void Answer(const ipc::ControlServer::Request& request);

  common::EventLoop* const loop_;
  ipc::ControlServer server_;
  std::map<std::string, LaterHandler> handlers_;
  bool taking_ = false;  // requests: the next one is looked for anyway
};

}  // namespace control

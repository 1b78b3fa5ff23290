#include "daemon/control/command_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/status.h"

namespace control {

absl::Status CommandServer::Listen(const std::string& endpoint) {
  const absl::Status bound = server_.Bind(endpoint);
  if (bound.ok()) loop_->Watch(server_.descriptor(), [this] { TakeRequests(); });
  return bound;
}

void CommandServer::On(const std::string& name, Handler handler) {
  OnLater(name,
          [this, handler = std::move(handler)](const std::string& peer, const Command& command) {
            Reply(peer, handler(command));
          });
}

void CommandServer::OnLater(const std::string& name, LaterHandler handler) {
  handlers_[name] = std::move(handler);
}

void CommandServer::TakeRequests() {
  taking_ = true;
  ipc::ControlServer::Request request;
  while (server_.Next(&request)) Answer(request);
  taking_ = false;
}

// ZeroMQ's descriptor is edge-triggered, and a reply may swallow the edge of the next request.
void CommandServer::Reply(const std::string& peer, const std::string& text) {
  server_.Reply(peer, text);
  if (!taking_) loop_->After(0, [this] { TakeRequests(); });
}

void CommandServer::Answer(const ipc::ControlServer::Request& request) {
  Command command;
  if (!ParseCommandUntrusted(request.text, &command)) {
    Reply(request.peer, ErrorJson("that is no command of this version of Laneway"));
    return;
  }
  Do(request.peer, command);
}

void CommandServer::Do(const std::string& peer, const Command& command) {
  const std::map<std::string, LaterHandler>::const_iterator found = handlers_.find(command.name);
  if (found != handlers_.end()) {
    found->second(peer, command);
    return;
  }
  Reply(peer, ErrorJson(absl::StrCat("this daemon (", LANEWAY_VERSION, ") knows no command '",
                                     command.name, "'; run laneway stop and start it again")));
}

}  // namespace control

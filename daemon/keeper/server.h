// The keeper's door: keeper.sock and the connection that lanewayd started it with. A connection is
// lanewayd's until it says Register; from then on it is a worker's. Thread safety: one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "daemon/common/acceptor.h"
#include "daemon/common/event_loop.h"
#include "daemon/common/hearing.h"
#include "daemon/keeper/keeper.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace keeper {

class Server {
 public:
  // Exits when no daemon and no worker has been connected for linger_s seconds.
  Server(Keeper* keeper, int64_t linger_s) : keeper_(keeper), linger_s_(linger_s) {}

  absl::Status Listen(const std::string& runtime_dir);
  // The connection to the daemon that started us, told that we are ready.
  void Greet(ipc::UniqueFd connection);
  void Run();

 private:
  struct Connection {
    ipc::UniqueFd socket;
    std::optional<uint32_t> worker;  // after its Register
  };

  void Add(ipc::UniqueFd socket);
  bool Hear(int fd);  // false: nothing more from there, for now
  // Handles the messages that came on other connections before the present one. Otherwise an
  // extent that a worker asks for after the session's end would never be released. A worker that
  // takes a session over would ask for extents that the last worker has given up. Not called before
  // an extent is made: one of those messages may say that the asking worker has ended.
  void HearOthers();
  void Drop(int fd);
  template <class Direction>
  absl::Status ReceiveFrom(Connection* connection);
  void Handle(Connection* connection, ipc::control::Received<ipc::control::ToKeeper>* received);
  void Handle(Connection* connection,
              ipc::control::Received<ipc::control::WorkerToKeeper>* received);
  void ReleaseWorker(uint32_t worker);
  void AnswerList(int fd, const ipc::control::Owner& owner);
  static void Reply(int fd, const ipc::control::ExtentReply& reply, const ipc::UniqueFd& extent);
  void AnswerQuery(int fd);
  void ArmLinger();

  Keeper* const keeper_;
  const int64_t linger_s_;
  common::EventLoop loop_;
  common::Acceptor acceptor_{&loop_};
  std::map<int, Connection> connections_;
  common::Hearing hearing_{[this](int fd) { return Hear(fd); }};
  common::EventLoop::TimerId linger_timer_ = 0;
};

}  // namespace keeper

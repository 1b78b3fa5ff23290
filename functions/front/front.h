// The process that clients of a served function connect to. The front never touches CUDA: a child,
// the engine (functions/player/engine.h), holds the function, and the front starts another engine
// when one is lost. So a lost worker ends no connection.
//
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "functions/function.h"
#include "functions/serving/frames.h"
#include "functions/serving/request_queue.h"
#include "ipc/calls/limits.h"
#include "ipc/unique_fd.h"

namespace functions {

class Front {
 public:
  // Serves `name` at `socket_path` until SIGTERM or SIGINT; requests that were whole by then are
  // answered. Fails with a sentence when the function cannot be served.
  static absl::Status Serve(const std::string& name, const std::string& socket_path);

  ~Front();
  Front(const Front&) = delete;

 private:
  using Id = RequestQueue::Client;

  struct Connection {
    ipc::UniqueFd socket;
    FrameReader reader;
    Bytes unsent;
    bool waits = false;  // for an answer
  };
  struct Engine {
    pid_t pid = 0;
    ipc::UniqueFd socket;
    FrameReader reader;
  };

  Front(const std::string& name, const std::string& socket_path)
      : name_(name), socket_path_(socket_path) {}
  absl::Status Start();
  void Loop();
  void Poll();
  absl::Status StartEngine();
  void OnEngine();
  void OnEngineFrame(const Bytes& frame);
  void OnEngineLost(const std::string& sentence);
  void EndEngine();
  void SendNext();
  void Accept();
  void OnReadable(Id id);
  void OnWritable(Id id);
  void QueueNext(Id id);
  void Answer(Id id, Bytes frame);
  void Close(Id id);

  const std::string name_;
  const std::string socket_path_;
  ipc::UniqueFd signals_, listener_;
  Engine engine_;
  bool is_first_start_ = true;
  absl::Status first_start_;  // why the first engine did not start
  bool draining_ = false;
  RequestQueue queue_{ipc::limits::kFunctionQueueMax};
  std::map<Id, Connection> connections_;
  std::map<Id, Bytes> requests_;  // whole, until answered
  Id last_id_ = 0;
};

}  // namespace functions

// Making this process a client: the hello on $RUNTIME/lanewayd.sock, the session's shared file, and
// the addresses of its slot.
//
// Nothing here is needed once Connect has returned but memory: the descriptors of the files are
// closed, and the socket may be closed by the program with every other descriptor. Thread safety:
// once per process.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <memory>
#include <string>

#include "ipc/channel.h"
#include "ipc/session_file.h"
#include "shim/hello_client.h"
#include "shim/liveness.h"

namespace shim {

struct Connection {
  ipc::Welcome welcome;
  std::unique_ptr<ipc::SessionFile> file;
  ipc::Channel channel;
  Liveness worker;
  bool has_pinned_window = false;  // mapped without access; see pinned.cc
};

// On success *error stays CUDA_SUCCESS.
std::unique_ptr<Connection> Connect(ConnectError* error);

// For tests and benchmarks that make the session file themselves: everything but the hello.
std::unique_ptr<Connection> Adopt(const ipc::Welcome& welcome, int session_fd, int pinned_fd,
                                  ConnectError* error);

}  // namespace shim

// Reaches ipc's ZeroMQ channel through the library liblaneway_zmq.so, which lies beside this one. A
// client over rings never loads libzmq: libzmq aborts a program that closes all its descriptors.
#pragma once

#include "absl/status/statusor.h"
#include "ipc/channel.h"
#include "ipc/session_file.h"

namespace shim {

absl::StatusOr<ipc::Channel> ConnectZmq(const char* endpoint, const ipc::CallToken& token);

}  // namespace shim

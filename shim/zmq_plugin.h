// Reaches ipc's ZeroMQ channel through a library of its own (liblaneway_zmq.so beside this one), so
// that a client over rings never loads libzmq, which aborts a program that closes its descriptors.
#pragma once

#include "absl/status/statusor.h"
#include "ipc/channel.h"
#include "ipc/session_file.h"

namespace shim {

absl::StatusOr<ipc::Channel> ConnectZmq(const char* endpoint, const ipc::CallToken& token);

}  // namespace shim

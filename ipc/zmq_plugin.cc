// liblaneway_zmq.so: the client's side of the ZeroMQ transport, loaded only when it is asked for.
#include <cstdio>

#include "ipc/zmq_channel.h"

extern "C" __attribute__((visibility("default"))) bool LanewayZmqConnect(
    const char* endpoint, const ipc::CallToken& token, ipc::Channel* channel, char* error,
    size_t error_bytes) {
  absl::StatusOr<ipc::Channel> made = ipc::ConnectZmqChannel(endpoint, token);
  if (made.ok()) {
    *channel = std::move(*made);
    return true;
  }
  std::snprintf(error, error_bytes, "%s", std::string(made.status().message()).c_str());
  return false;
}

namespace {
[[maybe_unused]] ipc::ZmqConnectFunction* const kSignatureHolds = &LanewayZmqConnect;
}  // namespace

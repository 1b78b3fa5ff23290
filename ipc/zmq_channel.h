// Call messages over ZeroMQ: the same bytes as in the rings, for `--transport=zmq`.
//
//     client: DEALER  --request messages-->  ROUTER bound by the worker, one per session
//                     <--reply messages----
//
// Only a DEALER may send that has the session's token as its identity. The
// token lies in the session file (ipc/session_file.h), which lanewayd gives to that program alone.
// Frames are bounded, and what is more than one frame is dropped with its message.
//
// Sender and receiver of one side share a socket, and one thread may send while another waits to
// receive: the socket is locked for moments only, and a receiver waits on descriptors outside the
// lock.
//
// A client over rings must never load libzmq, which aborts a program that closes its descriptors.
// The client's side is therefore a library, lib/laneway/shim/liblaneway_zmq.so, which exports
// LanewayZmqConnect alone.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ipc/channel.h"
#include "ipc/session_file.h"

namespace ipc {

inline constexpr char kZmqPluginName[] = "liblaneway_zmq.so";
inline constexpr char kZmqConnectSymbol[] = "LanewayZmqConnect";

// The plugin's one function: makes the client's channel to `endpoint`, or writes a sentence into
// `error` and returns false. The channel's code lies in the plugin, which must stay loaded.
using ZmqConnectFunction = bool(const char* endpoint, const CallToken& token, Channel* channel,
                                char* error, size_t error_bytes);

// The client's side. Unavailable when libzmq refuses the endpoint.
absl::StatusOr<Channel> ConnectZmqChannel(const std::string& endpoint, const CallToken& token);

// The worker's side. The socket's file is this user's alone.
absl::StatusOr<Channel> BindZmqChannel(const std::string& endpoint, const CallToken& token);

}  // namespace ipc

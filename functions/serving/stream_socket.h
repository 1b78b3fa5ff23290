// Local stream sockets for frames. Every descriptor is close-on-exec, and no call raises SIGPIPE.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "functions/function.h"
#include "ipc/unique_fd.h"

namespace functions {

// A socket file of mode 0600 in the place of whatever lies there. REQUIRES: the caller holds the
// lock of this name.
absl::StatusOr<ipc::UniqueFd> Listen(const std::string& path);
// NotFound: nobody listens there.
absl::StatusOr<ipc::UniqueFd> Connect(const std::string& path);
// A client of the same user; invalid otherwise, or when none waits. Does not block, nor do its
// reads and writes.
ipc::UniqueFd AcceptOwn(int listener);
absl::StatusOr<std::pair<ipc::UniqueFd, ipc::UniqueFd>> StreamPair();

// All of it; false: the peer is gone. Waits for a peer that does not read.
bool WriteAll(int socket, std::span<const std::byte> bytes);
// One whole frame's body; false: the peer is gone, or sends no frames.
class FrameReader;
bool ReadFrame(int socket, FrameReader* reader, Bytes* body);

}  // namespace functions

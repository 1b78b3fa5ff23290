// A fill of device memory, or a copy within it, as a node of a graph: what a message of the client
// asks for, checked as the call itself is. Thread safety: values.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "daemon/worker/graph_piece.h"
#include "ipc/door.h"

namespace worker {

struct DeviceWrite {
  uint64_t to = 0;
  uint64_t from = 0;           // of a copy
  uint64_t elements = 0;       // of a copy, bytes
  unsigned value = 0;          // of a fill
  unsigned element_bytes = 0;  // of a fill; 0: a copy

  bool IsCopy() const { return element_bytes == 0; }
  uint64_t bytes() const { return IsCopy() ? elements : elements * element_bytes; }
  // Adds the node with this number, and what it touches at each launch.
  void AddTo(unsigned number, GraphPiece* piece) const;
};

// True when messages of this call are read here.
bool IsDeviceWriteUntrusted(uint16_t op);

// None: the door refuses it, it has no bytes, or the client waits for its end by a mark.
// REQUIRES: IsDeviceWriteUntrusted() of its call.
std::optional<DeviceWrite> ReadDeviceWriteUntrusted(std::span<const std::byte> message,
                                                    ipc::Session& door);

}  // namespace worker

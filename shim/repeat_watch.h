// What is told of the chunks that a client repeats (shim/chunk_sender.h), just before each repeat.
// Thread safety: under the send lock.
#pragma once

#include <cstddef>
#include <span>

#include "ipc/chunks/chunk_format.h"

namespace shim {

class RepeatWatch {
 public:
  virtual ~RepeatWatch() = default;
  // `run`: the chunk's messages as they are this time. True: orders that the worker was given
  // (ipc::laneway::OrderLaunches) do not hold for this repeat, and must be taken back before it.
  virtual bool OnRepeat(const ipc::ChunkRepeat& repeat, std::span<const ipc::ChunkPatch> patches,
                        std::span<const std::byte> run) = 0;
  // All chunks go, and others come in their places. True as above.
  virtual bool OnForget() = 0;
};

}  // namespace shim

// How a chunk travels: a run of messages that the client sends again and again, as one message.
//
// The client writes the bytes of the run once into the session file's chunk area, whole messages
// one after the other, each padded to 8 bytes. From then on one message with kRepeatsChunk stands
// for the run: its body says where the run lies, and which 32-bit words differ this time. The run
// in the area never changes while a message in the ring may name it, so every worker of the session
// reads the same: a chunk needs no state in the worker, and survives the worker's loss.
//
//     MessageHeader (flags: kRepeatsChunk) | ChunkRepeat | ChunkPatch x patches
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ipc/calls/limits.h"
#include "ipc/message.h"

namespace ipc {

struct ChunkRepeat {
  uint32_t offset = 0;   // in the chunk area, a multiple of 8
  uint32_t bytes = 0;    // of the run, a multiple of 8, at most limits::kChunkBytesMax
  uint32_t patches = 0;  // at most limits::kChunkPatchesMax
  uint32_t verify = 0;   // 1: the worker executes the run both ways and compares; else 0
};

struct ChunkPatch {
  uint32_t word = 0;   // the run's 32-bit words are counted from 0
  uint32_t value = 0;  // the word this time
};

// True when two messages have equal headers. A chunk stands for messages of the same shapes as its
// own. `a` and `b` point at whole messages.
inline bool SameShape(const std::byte* a, const std::byte* b) {
  uint64_t left[sizeof(MessageHeader) / 8], right[sizeof(MessageHeader) / 8];
  std::memcpy(left, a, sizeof left);
  std::memcpy(right, b, sizeof right);
  return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2])) == 0;
}
static_assert(sizeof(MessageHeader) == 3 * 8);

// Where a run ends at the latest.
inline bool IsAtLimit(uint32_t messages, size_t bytes) {
  return messages >= limits::kChunkMessages || bytes >= limits::kChunkBytes;
}

static_assert(std::is_trivially_copyable_v<ChunkRepeat> && sizeof(ChunkRepeat) == 16);
static_assert(std::is_trivially_copyable_v<ChunkPatch> && sizeof(ChunkPatch) == 8);
static_assert(sizeof(MessageHeader) + sizeof(ChunkRepeat) +
                  limits::kChunkPatchesMax * sizeof(ChunkPatch) <=
              limits::kMessageBytesMax);

}  // namespace ipc

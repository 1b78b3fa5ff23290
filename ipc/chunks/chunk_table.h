// The chunks of a session: runs of messages in the chunk area, found by how they begin.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/chunks/hold_trust.h"

namespace ipc {

struct Chunk {
  static constexpr uint32_t kNone = ~0u;
  uint32_t offset = 0;  // in the area
  uint32_t bytes = 0;
  uint32_t messages = 0;
  uint32_t unlike = 0;   // times in a row that a run agreed and differed in too many words
  bool was_cut = false;  // each time that the client sent the run before
  HoldTrust trust;       // in runs that were first taken for this chunk
};

class ChunkTable {
 public:
  // `area` outlives the table, which alone writes the area.
  explicit ChunkTable(std::span<std::byte> area) : area_(area) {}

  // Chunks by number: those whose first message has this header, short ones first. Valid until the
  // table changes.
  const std::vector<uint32_t>& BeginningWith(const MessageHeader& header) const;
  Chunk& At(uint32_t number) { return chunks_[number]; }
  const Chunk& At(uint32_t number) const { return chunks_[number]; }
  uint32_t NumberOf(const Chunk& chunk) const {
    return static_cast<uint32_t>(&chunk - chunks_.data());
  }
  // The chunk's bytes, which never change while the table knows the chunk.
  std::span<const std::byte> BytesOf(const Chunk& chunk) const {
    return area_.subspan(chunk.offset, chunk.bytes);
  }

  // Puts the run into the area, and says where in the chunk. `instead`: the chunk of the same shape
  // that the run replaces, or null. The bytes of that chunk stay: a message that is still to be
  // read may name them. Does nothing when the table is full.
  void Add(std::span<const std::byte> run, Chunk chunk, Chunk* instead);
  // True when the client sent a run of this shape lately. Notes that the client sends one now.
  bool WasSeen(uint64_t shape);
  // The area is used up, or the session has as many chunks as it may have.
  bool full() const { return full_; }
  size_t size() const { return chunks_.size(); }
  void Clear();

 private:
  static constexpr size_t kChunksMax = 512, kSeen = 64;

  const std::span<std::byte> area_;
  uint32_t used_bytes_ = 0;
  bool full_ = false;
  std::vector<Chunk> chunks_;
  absl::flat_hash_map<uint64_t, std::vector<uint32_t>> beginnings_;
  std::array<uint64_t, kSeen> seen_{};  // shapes of runs
  uint32_t next_seen_ = 0;              // where the next one goes
};

// Continues a hash of headers, which are the shape of a run. FNV-1a over their words.
uint64_t MixHeader(uint64_t hash, const MessageHeader& header);
inline constexpr uint64_t kShapeSeed = 0xcbf29ce484222325ull;

}  // namespace ipc

// The books of one session about lanes: mapped extents of the session's lane, extents kept for
// blocks that outlive their iteration, and blocks that keep the lane itself.
//
// Decisions alone: the lane and its table map, unmap and free. Places are offsets from the start of
// the session's ephemeral part. An extent that the session keeps is never mapped as the lane's.
// Thread safety: none; LaneMember says who may use it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "daemon/worker/backing.h"

namespace worker {

class LaneBooks {
 public:
  struct Kept {
    Extent extent;              // without an id while it is on the host
    std::set<uint64_t> blocks;  // that live in it, by their offsets
  };

  // --- extents of the lane that are mapped for the session
  bool IsMapped(uint64_t offset) const { return mapped_.count(offset) != 0; }
  void NoteMapped(uint64_t offset, uint64_t bytes) { mapped_[offset] = bytes; }
  // False: it was not mapped.
  bool NoteUnmapped(uint64_t offset) { return mapped_.erase(offset) != 0; }
  // Of the lane, and of what the session keeps.
  uint64_t MappedBytes() const;

  // --- extents that the session keeps
  const std::map<uint64_t, Kept>& kept() const { return kept_; }
  // True when the session keeps a part of [offset, offset + bytes).
  bool Keeps(uint64_t offset, uint64_t bytes) const;
  // How much of the place the session keeps.
  uint64_t KeptBytes(uint64_t offset, uint64_t bytes) const;
  // How far an extent that begins at `offset` may reach, at most to `end`: not over the edge of one
  // that the session keeps.
  uint64_t EndAtEdge(uint64_t offset, uint64_t end) const;
  // REQUIRES: the session keeps nothing of the place.
  void Keep(uint64_t offset, const Extent& extent);
  // Other memory at the same place. REQUIRES: the session keeps an extent of this size there.
  void Replace(uint64_t offset, const Extent& extent);
  // Neither extents nor blocks are the session's any more.
  void Clear();

  // --- blocks that outlive their iteration
  // The block counts in each kept extent that holds a part of the block.
  void AddBlock(uint64_t offset, uint64_t bytes);
  // As AddBlock(), and the block keeps the lane: it lies in the lane itself.
  void Pin(uint64_t offset, uint64_t bytes);
  bool is_pinned() const { return !pins_.empty(); }
  // The block is gone. False: there is no such block.
  bool Drop(uint64_t offset);

  // --- spares
  // The session keeps an extent in which no block lives.
  bool has_spare() const { return has_spare_; }
  // Takes the spares out of the books that are in memory and can go. `parts` are the lane's: each
  // is mapped as a whole, so what is kept over one part goes together or stays.
  std::vector<Piece> TakeSpares(const std::vector<Piece>& parts);

 private:
  bool CanGo(uint64_t offset, const std::set<uint64_t>& going,
             const std::vector<Piece>& parts) const;
  void NoteInKept(uint64_t offset, uint64_t bytes);
  void LookForSpare();

  std::map<uint64_t, uint64_t> mapped_;  // offset -> bytes
  std::map<uint64_t, Kept> kept_;        // by offset
  std::map<uint64_t, uint64_t> pins_;    // blocks that keep the lane: offset -> bytes
  bool has_spare_ = false;
};

}  // namespace worker

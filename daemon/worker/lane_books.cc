#include "daemon/worker/lane_books.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace worker {
namespace {

using Entry = std::pair<const uint64_t, LaneBooks::Kept>;

// The bytes that the extent has in [offset, offset + bytes).
uint64_t Overlap(const Entry& kept, uint64_t offset, uint64_t bytes) {
  const uint64_t from = std::max(kept.first, offset);
  const uint64_t to = std::min(kept.first + kept.second.extent.bytes, offset + bytes);
  return from < to ? to - from : 0;
}

}  // namespace

uint64_t LaneBooks::MappedBytes() const {
  uint64_t bytes = 0;
  for (const std::pair<const uint64_t, uint64_t>& part : mapped_) bytes += part.second;
  for (const Entry& kept : kept_)
    bytes += kept.second.extent.id != 0 ? kept.second.extent.bytes : 0;
  return bytes;
}

// --- extents that the session keeps --------------------------------------------------------------

bool LaneBooks::Keeps(uint64_t offset, uint64_t bytes) const {
  std::map<uint64_t, Kept>::const_iterator next = kept_.lower_bound(offset + bytes);
  if (next == kept_.begin()) return false;
  --next;
  return next->first + next->second.extent.bytes > offset;
}

uint64_t LaneBooks::KeptBytes(uint64_t offset, uint64_t bytes) const {
  uint64_t sum = 0;
  for (const Entry& kept : kept_) sum += Overlap(kept, offset, bytes);
  return sum;
}

uint64_t LaneBooks::EndAtEdge(uint64_t offset, uint64_t end) const {
  for (const Entry& kept : kept_) {
    for (const uint64_t edge : {kept.first, kept.first + kept.second.extent.bytes}) {
      if (edge > offset) end = std::min(end, edge);
    }
  }
  return end;
}

void LaneBooks::Keep(uint64_t offset, const Extent& extent) {
  assert(!Keeps(offset, extent.bytes) && !IsMapped(offset));
  kept_[offset] = {extent, {}};
  has_spare_ = true;
}

void LaneBooks::Replace(uint64_t offset, const Extent& extent) {
  Extent& kept = kept_.at(offset).extent;
  assert(kept.bytes == extent.bytes);
  kept = extent;
}

void LaneBooks::Clear() {
  kept_.clear();
  pins_.clear();
  has_spare_ = false;
}

// --- blocks --------------------------------------------------------------------------------------

void LaneBooks::NoteInKept(uint64_t offset, uint64_t bytes) {
  for (std::pair<const uint64_t, Kept>& kept : kept_) {
    if (Overlap(kept, offset, bytes) != 0) kept.second.blocks.insert(offset);
  }
}

// A pinned block counts, too, in an extent that the session has come to keep since: the extent
// stays as long as any block has a part in it.
void LaneBooks::AddBlock(uint64_t offset, uint64_t bytes) {
  NoteInKept(offset, bytes);
  for (const std::pair<const uint64_t, uint64_t>& pinned : pins_)
    NoteInKept(pinned.first, pinned.second);
  LookForSpare();
}

void LaneBooks::Pin(uint64_t offset, uint64_t bytes) {
  pins_[offset] = bytes;
  AddBlock(offset, bytes);
}

bool LaneBooks::Drop(uint64_t offset) {
  bool found = pins_.erase(offset) != 0;
  for (std::pair<const uint64_t, Kept>& kept : kept_)
    found = kept.second.blocks.erase(offset) != 0 || found;
  LookForSpare();
  return found;
}

// --- spares --------------------------------------------------------------------------------------

void LaneBooks::LookForSpare() {
  has_spare_ = std::any_of(kept_.begin(), kept_.end(),
                           [](const Entry& kept) { return kept.second.blocks.empty(); });
}

bool LaneBooks::CanGo(uint64_t offset, const std::set<uint64_t>& going,
                      const std::vector<Piece>& parts) const {
  for (const Piece& part : parts) {
    const uint64_t bytes = part.extent.bytes;
    if (Overlap(*kept_.find(offset), part.address, bytes) == 0) continue;
    for (const Entry& kept : kept_) {
      if (Overlap(kept, part.address, bytes) != 0 && going.count(kept.first) == 0) return false;
    }
  }
  return true;
}

std::vector<Piece> LaneBooks::TakeSpares(const std::vector<Piece>& parts) {
  std::set<uint64_t> going;
  for (const Entry& kept : kept_) {
    if (kept.second.blocks.empty() && kept.second.extent.id != 0) going.insert(kept.first);
  }
  size_t before = 0;
  do {
    before = going.size();
    std::erase_if(going, [&](uint64_t offset) { return !CanGo(offset, going, parts); });
  } while (going.size() != before);
  std::vector<Piece> taken;
  for (const uint64_t offset : going) {
    taken.push_back({offset, kept_.at(offset).extent});
    kept_.erase(offset);
  }
  LookForSpare();
  return taken;
}

}  // namespace worker

#include "shim/arena/virtual_ranges.h"

#include <cassert>
#include <iterator>

namespace shim::arena {
namespace {

bool IsWhole(Range range) {
  return range.bytes != 0 && (range.base | range.bytes) % kVirtualStep == 0 &&
         range.base + range.bytes > range.base;
}

bool Overlap(Range one, Range other) {
  return one.base < other.base + other.bytes && other.base < one.base + one.bytes;
}

// The entry of a map by start that begins at or before the address; end() when none does.
template <class Map>
auto AtOrBefore(Map& map, uint64_t address) {
  auto next = map.upper_bound(address);
  return next == map.begin() ? map.end() : std::prev(next);
}

}  // namespace

// --- addresses -----------------------------------------------------------------------------------

void VirtualRanges::Reserve(Range range) {
  assert(IsWhole(range));
  reservations_[range.base] = range.bytes;
}

bool VirtualRanges::FindReservation(uint64_t address, Range* found) const {
  const auto before = AtOrBefore(reservations_, address);
  if (before == reservations_.end() || address - before->first >= before->second) return false;
  *found = {before->first, before->second};
  return true;
}

bool VirtualRanges::Unreserve(Range range) {
  const auto found = reservations_.find(range.base);
  if (found == reservations_.end() || found->second != range.bytes) return false;
  const auto mapped = mappings_.lower_bound(range.base);
  if (mapped != mappings_.end() && mapped->first - range.base < range.bytes) return false;
  reservations_.erase(found);
  return true;
}

// --- physical memory -----------------------------------------------------------------------------

VirtualRanges::Id VirtualRanges::Create(uint64_t bytes, int device, uint64_t place, uint64_t note) {
  Memory& memory = memories_[++last_id_];
  memory.bytes = bytes;
  memory.device = device;
  memory.place = place;
  memory.note = note;
  places_[place] = last_id_;
  return last_id_;
}

void VirtualRanges::Forget(Memories::iterator memory, Memory* gone) {
  *gone = memory->second;
  places_.erase(memory->second.place);
  memories_.erase(memory);
}

const VirtualRanges::Memory* VirtualRanges::Find(Id id) const {
  const auto found = memories_.find(id);
  return found == memories_.end() || found->second.handles == 0 ? nullptr : &found->second;
}

VirtualRanges::Id VirtualRanges::Retain(uint64_t address) {
  const Id id = MappedAt(address);
  if (id != 0) ++memories_.at(id).handles;
  return id;
}

bool VirtualRanges::Release(Id id, bool* unused, Memory* memory) {
  const auto found = memories_.find(id);
  if (found == memories_.end() || found->second.handles == 0) return false;
  --found->second.handles;
  *unused = found->second.handles == 0 && found->second.mapping == 0;
  if (*unused) Forget(found, memory);
  return true;
}

// --- mappings ------------------------------------------------------------------------------------

VirtualRanges::MapAnswer VirtualRanges::Map(Range range, Id id) {
  Range reservation;
  const Memory* const memory = Find(id);
  if (memory == nullptr || !IsWhole(range) || range.bytes > memory->bytes ||
      !FindReservation(range.base, &reservation) ||
      range.bytes > reservation.bytes - (range.base - reservation.base)) {
    return MapAnswer::kInvalid;
  }
  const auto before = AtOrBefore(mappings_, range.base + range.bytes - 1);
  if (before != mappings_.end() &&
      Overlap(range, {before->first, memories_.at(before->second).bytes})) {
    return MapAnswer::kInvalid;
  }
  if (memory->mapping != 0) return MapAnswer::kSecondMapping;
  if (range.bytes != memory->bytes) return MapAnswer::kPartOfMemory;
  mappings_[range.base] = id;
  memories_.at(id).mapping = range.base;
  return MapAnswer::kMapped;
}

VirtualRanges::Id VirtualRanges::MappedAt(uint64_t address) const {
  const auto before = AtOrBefore(mappings_, address);
  if (before == mappings_.end()) return 0;
  return address - before->first < memories_.at(before->second).bytes ? before->second : 0;
}

std::vector<VirtualRanges::Id> VirtualRanges::MappedIn(Range range) const {
  std::vector<Id> ids;
  uint64_t address = range.base;
  while (address - range.base < range.bytes) {
    const auto found = mappings_.find(address);
    if (found == mappings_.end()) return {};
    ids.push_back(found->second);
    address += memories_.at(found->second).bytes;
  }
  return address - range.base == range.bytes ? ids : std::vector<Id>{};
}

bool VirtualRanges::Unmap(Id id, Memory* memory) {
  const auto found = memories_.find(id);
  assert(found != memories_.end() && found->second.mapping != 0);
  mappings_.erase(found->second.mapping);
  found->second.mapping = 0;
  found->second.open = false;
  if (found->second.handles != 0) return false;
  Forget(found, memory);
  return true;
}

// --- places --------------------------------------------------------------------------------------

std::vector<VirtualRanges::Id> VirtualRanges::LyingIn(Range range, Id but) const {
  std::vector<Id> ids;
  for (auto place = AtOrBefore(places_, range.base + range.bytes - 1);
       place != places_.end() &&
       Overlap(range, {place->first, memories_.at(place->second).bytes});) {
    if (place->second != but) ids.push_back(place->second);
    if (place == places_.begin()) break;
    --place;
  }
  return ids;
}

void VirtualRanges::Moved(Id id, uint64_t place, bool home) {
  Memory& memory = memories_.at(id);
  places_.erase(memory.place);
  places_[place] = id;
  memory.place = place;
  memory.at_home = home;
  memory.used = true;
}

void VirtualRanges::ForgetDevice(int device, std::vector<Memory>* gone) {
  for (Memories::iterator it = memories_.begin(); it != memories_.end();) {
    const Memories::iterator memory = it++;
    if (memory->second.device != device) continue;
    if (memory->second.mapping != 0) mappings_.erase(memory->second.mapping);
    Forget(memory, &gone->emplace_back());
  }
}

}  // namespace shim::arena

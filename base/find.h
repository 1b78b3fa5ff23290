// Look-ups in a map in one expression, instead of an iterator that is compared with end().
//
//   if (const Job* job = base::FindOrNull(jobs_, id)) Show(*job);
//   const uint32_t slot = base::FindOr(slots_, stream, kNoSlot);
//
// They work for every map with find(). A caller that also erases or inserts uses the iterator.
#pragma once

namespace base {

// The value for `key`, or null when the map has none. Stays valid as long as the map's own
// references do; const when the map is const.
template <class Map, class Key>
auto FindOrNull(Map& map, const Key& key) -> decltype(&map.find(key)->second) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// A copy of the value for `key`, or of the fallback.
template <class Map, class Key>
typename Map::mapped_type FindOr(const Map& map, const Key& key,
                                 typename Map::mapped_type fallback) {
  const auto found = map.find(key);
  return found == map.end() ? fallback : found->second;
}

}  // namespace base

#include "functions/relocation.h"

#include <cassert>
#include <cstring>
#include <iterator>

namespace functions {

void Relocation::Add(uint64_t base, uint64_t bytes, uint64_t now) {
  const bool fresh = blocks_.insert({base, Block{bytes, now}}).second;
  assert(fresh && base + bytes >= base);
}

bool Relocation::Holds(uint64_t address, uint64_t bytes) const {
  std::map<uint64_t, Block>::const_iterator block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return false;
  block = std::prev(block);
  const uint64_t offset = address - block->first;
  return offset < block->second.bytes && bytes <= block->second.bytes - offset;
}

uint64_t Relocation::Moved(uint64_t address) const {
  std::map<uint64_t, Block>::const_iterator block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return address;
  block = std::prev(block);
  const uint64_t offset = address - block->first;
  return offset < block->second.bytes ? block->second.now + offset : address;
}

void Relocation::Move(std::span<std::byte> words) const {
  if (blocks_.empty()) return;
  const uint64_t first = blocks_.begin()->first;
  const uint64_t last = blocks_.rbegin()->first + blocks_.rbegin()->second.bytes;
  for (size_t at = 0; at + sizeof(uint64_t) <= words.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, words.data() + at, sizeof word);
    if (word < first || word >= last) continue;
    word = Moved(word);
    std::memcpy(words.data() + at, &word, sizeof word);
  }
}

}  // namespace functions

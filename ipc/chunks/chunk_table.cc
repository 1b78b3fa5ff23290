#include "ipc/chunks/chunk_table.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ipc {

uint64_t MixHeader(uint64_t hash, const MessageHeader& header) {
  std::array<uint64_t, sizeof header / 8> words;
  std::memcpy(words.data(), &header, sizeof header);
  for (const uint64_t word : words) hash = (hash ^ word) * 0x100000001b3ull;
  return hash ^ hash >> 29;
}

const std::vector<uint32_t>& ChunkTable::BeginningWith(const MessageHeader& header) const {
  static const std::vector<uint32_t>* const none = new std::vector<uint32_t>;
  const auto it = beginnings_.find(MixHeader(kShapeSeed, header));
  return it == beginnings_.end() ? *none : it->second;
}

void ChunkTable::Add(std::span<const std::byte> run, Chunk chunk, Chunk* instead) {
  full_ = full_ || run.size() > area_.size() - used_bytes_ || chunks_.size() == kChunksMax;
  if (full_) return;
  std::memcpy(area_.data() + used_bytes_, run.data(), run.size());
  chunk.offset = used_bytes_;
  chunk.bytes = static_cast<uint32_t>(run.size());
  used_bytes_ += chunk.bytes;
  if (instead != nullptr) {
    chunk.trust = instead->trust;
    *instead = chunk;
    return;
  }
  std::vector<uint32_t>& alike = beginnings_[MixHeader(kShapeSeed, HeaderAt(run, 0))];
  const auto longer = std::find_if(alike.begin(), alike.end(), [&](uint32_t number) {
    return chunks_[number].messages > chunk.messages;
  });
  alike.insert(longer, static_cast<uint32_t>(chunks_.size()));
  chunks_.push_back(chunk);
}

bool ChunkTable::WasSeen(uint64_t shape) {
  if (std::find(seen_.begin(), seen_.end(), shape) != seen_.end()) return true;
  seen_[next_seen_++ % kSeen] = shape;
  return false;
}

void ChunkTable::Clear() {
  seen_ = {};
  chunks_.clear();
  beginnings_.clear();
  used_bytes_ = 0;
  full_ = false;
}

}  // namespace ipc

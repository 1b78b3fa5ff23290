#include "ipc/chunks/chunk_matcher.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ipc {
namespace {

constexpr uint32_t kMessagesMin = 3;  // a repeat of less saves nothing
constexpr uint32_t kUnlikeMax = 2;

bool SameShape(const MessageHeader& a, const MessageHeader& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Of the shape of a run: its headers.
uint64_t HashOf(std::span<const std::byte> run) {
  uint64_t hash = kShapeSeed;
  for (size_t at = 0; at < run.size();) {
    const MessageHeader header = HeaderAt(run, at);
    hash = MixHeader(hash, header);
    at += PaddedBytes(header.bytes);
  }
  return hash;
}

}  // namespace

ChunkMatcher::ChunkMatcher(std::span<std::byte> area)
    : table_(area), run_(std::make_unique<std::byte[]>(limits::kChunkBytesMax)) {}

std::span<std::byte> ChunkMatcher::Room() {
  assert(run_bytes_ < limits::kChunkBytes);
  return {run_.get() + run_bytes_, limits::kChunkMessageBytesMax};
}

ChunkMatcher::Verdict ChunkMatcher::OnMessage(size_t bytes, bool ends_run) {
  assert(bytes >= sizeof(MessageHeader) && bytes <= limits::kChunkMessageBytesMax);
  const size_t at = run_bytes_;
  std::memset(run_.get() + at + bytes, 0, PaddedBytes(bytes) - bytes);
  run_bytes_ += PaddedBytes(bytes);
  ++run_messages_;
  ++counts_.messages;
  if (at == 0) candidates_ = table_.BeginningWith(HeaderAt(Run(), 0));
  const bool ends =
      ends_run || run_messages_ >= limits::kChunkMessages || run_bytes_ >= limits::kChunkBytes;
  if (!holding_) {
    unsent_ = Run().subspan(at);
    if (ends) Learn();
    return Verdict::kSend;
  }
  Chunk* const whole = Narrow(at);
  if (whole != nullptr && Compare(whole)) {
    counts_.repeated += run_messages_;
    unsent_ = Run();
    BeginRun();
    return Verdict::kRepeat;
  }
  if (whole == nullptr && !candidates_.empty() && !ends) return Verdict::kHold;
  holding_ = false;
  unsent_ = Run();
  if (whole != nullptr || ends) Learn();
  return Verdict::kSend;
}

void ChunkMatcher::EndRun() {
  unsent_ = holding_ ? Run() : std::span<const std::byte>();
  if (run_bytes_ != 0) Learn();
}

void ChunkMatcher::BeginRun() {
  run_bytes_ = 0;
  run_messages_ = 0;
  holding_ = true;
}

// --- matching ------------------------------------------------------------------------------------

Chunk* ChunkMatcher::Narrow(size_t at) {
  const MessageHeader header = HeaderAt(Run(), at);
  Chunk* whole = nullptr;
  std::erase_if(candidates_, [&](uint32_t index) {
    Chunk& chunk = table_.At(index);
    // A chunk that is longer so far has a message here: chunks consist of whole messages, and those
    // before agreed in length.
    if (at >= chunk.bytes || !SameShape(header, HeaderAt(table_.BytesOf(chunk), at))) return true;
    if (chunk.messages == run_messages_) whole = &chunk;
    return false;
  });
  return whole;
}

bool ChunkMatcher::Compare(Chunk* chunk) {
  const std::byte* const before = table_.BytesOf(*chunk).data();
  const size_t limit = std::min<size_t>(limits::kChunkPatchesMax, chunk->bytes / 16);
  size_t count = 0;
  for (size_t at = 0; at < chunk->bytes; at += 8) {
    if (std::memcmp(before + at, run_.get() + at, 8) == 0) continue;
    for (size_t half = at; half < at + 8; half += 4) {
      if (std::memcmp(before + half, run_.get() + half, 4) == 0) continue;
      if (count == limit) {
        ++chunk->unlike;
        return false;
      }
      patches_[count].word = static_cast<uint32_t>(half / 4);
      std::memcpy(&patches_[count].value, run_.get() + half, 4);
      ++count;
    }
  }
  chunk->unlike = 0;
  repeat_ = {chunk->offset, chunk->bytes, static_cast<uint32_t>(count), 0};
  return true;
}

// --- learning ------------------------------------------------------------------------------------

// The run was sent, or is about to be.
void ChunkMatcher::Learn() {
  if (run_messages_ >= kMessagesMin) {
    const uint64_t hash = HashOf(Run());
    if (std::find(seen_.begin(), seen_.end(), hash) != seen_.end()) {
      MakeChunk();
    } else {
      seen_[next_seen_++ % kSeen] = hash;
    }
  }
  BeginRun();
}

// A chunk of the same shape whose words have changed for good is made anew.
void ChunkMatcher::MakeChunk() {
  Chunk* same = nullptr;
  for (const uint32_t index : candidates_) {
    Chunk& chunk = table_.At(index);
    if (chunk.bytes == run_bytes_ && chunk.messages == run_messages_) same = &chunk;
  }
  if (same == nullptr || same->unlike >= kUnlikeMax) table_.Add(Run(), run_messages_, same);
}

void ChunkMatcher::Forget() {
  assert(!holds());
  table_.Clear();
  candidates_.clear();
  seen_ = {};
}

}  // namespace ipc

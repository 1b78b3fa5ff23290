#include "ipc/chunks/chunk_matcher.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ipc {
namespace {

constexpr uint32_t kMessagesMin = 3;  // a repeat of less saves nothing
constexpr uint32_t kUnlikeMax = 2;

constexpr size_t kBlock = 64;  // bytes that are compared at once

// The headers of the two messages.
bool SameShape(const std::byte* a, const std::byte* b) {
  uint64_t left[sizeof(MessageHeader) / 8], right[sizeof(MessageHeader) / 8];
  std::memcpy(left, a, sizeof left);
  std::memcpy(right, b, sizeof right);
  return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2])) == 0;
}
static_assert(sizeof(MessageHeader) == 3 * 8);

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

void ChunkMatcher::MayHold(bool may_hold) {
  may_hold_ = may_hold;
  if (!in_run()) holding_ = may_hold;
}

std::span<std::byte> ChunkMatcher::Room() {
  assert(run_bytes_ < limits::kChunkBytes);
  return {run_.get() + run_bytes_, limits::kChunkMessageBytesMax};
}

ChunkMatcher::Verdict ChunkMatcher::OnMessage(size_t bytes, bool ends_run) {
  assert(bytes >= sizeof(MessageHeader) && bytes <= limits::kChunkMessageBytesMax);
  const size_t at = run_bytes_;
  if (bytes % 8 != 0) std::memset(run_.get() + at + bytes, 0, PaddedBytes(bytes) - bytes);
  run_bytes_ += PaddedBytes(bytes);
  ++run_messages_;
  ++counts_.messages;
  if (at == 0 && holding_) {
    BeginFollowing();
  } else if (followed_ != nullptr && !Agrees(*followed_, at)) {
    FollowNext();
  }
  const bool ends =
      ends_run || run_messages_ >= limits::kChunkMessages || run_bytes_ >= limits::kChunkBytes;
  // A program's first waits end in other messages than its later ones: the client has learned then
  // what to ask for ahead. The run before the wait is the same.
  const size_t shape_bytes = ends_run ? at : run_bytes_;
  if (!holding_) {
    unsent_ = Run().subspan(at);
    if (ends) Learn(shape_bytes);
    return Verdict::kSend;
  }
  const bool whole = followed_ != nullptr && followed_->messages == run_messages_;
  if (whole && Compare(followed_)) {
    Repeat();
    return Verdict::kRepeat;
  }
  if (!whole && followed_ != nullptr && !ends) return Verdict::kHold;
  EndHolding(false);
  holding_ = false;
  unsent_ = Run();
  if (whole || ends) Learn(shape_bytes);
  return Verdict::kSend;
}

void ChunkMatcher::EndRun() {
  unsent_ = holding_ ? Run() : std::span<const std::byte>();
  if (holds()) EndHolding(false);
  if (run_bytes_ != 0) Learn(run_bytes_);
}

void ChunkMatcher::BeginRun() {
  run_bytes_ = 0;
  run_messages_ = 0;
  holding_ = may_hold_;
  followed_ = nullptr;
  first_ = Chunk::kNone;
  candidates_ = {};
  last_ = Chunk::kNone;
}

// --- matching ------------------------------------------------------------------------------------

// A chunk that is longer so far has a message here: chunks consist of whole messages, and those
// before agreed in length.
bool ChunkMatcher::Agrees(const Chunk& chunk, size_t at) const {
  return at < chunk.bytes && SameShape(run_.get() + at, table_.BytesOf(chunk).data() + at);
}

bool ChunkMatcher::AgreesSoFar(const Chunk& chunk) const {
  for (size_t at = 0; at < run_bytes_; at += PaddedBytes(HeaderAt(Run(), at).bytes)) {
    if (!Agrees(chunk, at)) return false;
  }
  return true;
}

void ChunkMatcher::BeginFollowing() {
  candidates_ = table_.BeginningWith(HeaderAt(Run(), 0));
  const uint32_t usual = last_ == Chunk::kNone ? Chunk::kNone : table_.At(last_).next;
  followed_ = usual == Chunk::kNone ? nullptr : &table_.At(usual);
  if (followed_ == nullptr || !Agrees(*followed_, 0)) FollowNext();
  if (followed_ == nullptr) return;
  first_ = table_.NumberOf(*followed_);
  if (followed_->trust.MayHold()) return;
  holding_ = false;
  followed_ = nullptr;
}

// The chunk that was followed first is what the next run like this one is taken for, too.
void ChunkMatcher::EndHolding(bool repeated) {
  if (first_ == Chunk::kNone) return;
  HoldTrust& trust = table_.At(first_).trust;
  if (repeated) {
    trust.OnRepeated(run_messages_);
  } else {
    trust.OnDiffered(run_messages_);
  }
}

void ChunkMatcher::FollowNext() {
  followed_ = nullptr;
  while (followed_ == nullptr && !candidates_.empty()) {
    Chunk& chunk = table_.At(candidates_.front());
    candidates_ = candidates_.subspan(1);
    if (AgreesSoFar(chunk)) followed_ = &chunk;
  }
}

void ChunkMatcher::Repeat() {
  counts_.repeated += run_messages_;
  unsent_ = Run();
  const uint32_t number = table_.NumberOf(*followed_);
  if (last_ != Chunk::kNone) table_.At(last_).next = number;
  EndHolding(true);
  BeginRun();
  last_ = number;
}

bool ChunkMatcher::Compare(Chunk* chunk) {
  const std::byte* const before = table_.BytesOf(*chunk).data();
  const size_t limit = std::min<size_t>(limits::kChunkPatchesMax, chunk->bytes / 16);
  size_t count = 0;
  for (size_t begin = 0; begin < chunk->bytes; begin += kBlock) {
    const size_t end = std::min<size_t>(begin + kBlock, chunk->bytes);
    if (std::memcmp(before + begin, run_.get() + begin, end - begin) == 0) continue;
    for (size_t at = begin; at < end; at += 4) {
      if (std::memcmp(before + at, run_.get() + at, 4) == 0) continue;
      if (count == limit) {
        ++chunk->unlike;
        return false;
      }
      patches_[count].word = static_cast<uint32_t>(at / 4);
      std::memcpy(&patches_[count].value, run_.get() + at, 4);
      ++count;
    }
  }
  chunk->unlike = 0;
  repeat_ = {chunk->offset, chunk->bytes, static_cast<uint32_t>(count), 0};
  return true;
}

// --- learning ------------------------------------------------------------------------------------

// The run was sent, or is about to be. Where runs rest, they are learned all the same.
void ChunkMatcher::Learn(size_t shape_bytes) {
  if (run_messages_ >= kMessagesMin && table_.WasSeen(HashOf(Run().first(shape_bytes))))
    MakeChunk();
  BeginRun();
}

// A chunk of the same shape whose words have changed for good is made anew.
void ChunkMatcher::MakeChunk() {
  Chunk* same = nullptr;
  for (const uint32_t index : table_.BeginningWith(HeaderAt(Run(), 0))) {
    Chunk& chunk = table_.At(index);
    if (chunk.bytes == run_bytes_ && AgreesSoFar(chunk)) same = &chunk;
  }
  if (same == nullptr || same->unlike >= kUnlikeMax) table_.Add(Run(), run_messages_, same);
}

void ChunkMatcher::Forget() {
  assert(!holds());
  table_.Clear();
  last_ = Chunk::kNone;
}

}  // namespace ipc

#include "ipc/chunks/chunk_matcher.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ipc {
namespace {

constexpr uint32_t kMessagesMin = 3;  // a repeat of less saves nothing
constexpr uint32_t kUnlikeMax = 2;

constexpr size_t kBlock = 64;  // bytes that are compared at once

// True when the chunk begins with messages of the same shape as `messages`.
bool BeginsLike(std::span<const std::byte> chunk, std::span<const std::byte> messages) {
  for (size_t at = 0; at < messages.size(); at += PaddedBytes(HeaderAt(messages, at).bytes)) {
    if (at >= chunk.size() || !SameShape(messages.data() + at, chunk.data() + at)) return false;
  }
  return true;
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
    : table_(area), buffer_(std::make_unique<std::byte[]>(limits::kChunkBytesMax)) {}

void ChunkMatcher::MayHold(bool may_hold) {
  may_hold_ = may_hold;
  if (part_.messages == 0) holding_ = may_hold;
}

// Messages that are in no window any more make room.
std::span<std::byte> ChunkMatcher::Room() {
  if (end_ >= limits::kChunkBytes) [[unlikely]] {
    const size_t unneeded = std::min(run_.begin, part_.begin);
    std::memmove(buffer_.get(), buffer_.get() + unneeded, end_ - unneeded);
    end_ -= unneeded;
    run_.begin -= unneeded;
    part_.begin -= unneeded;
    assert(end_ < limits::kChunkBytes);
  }
  return {buffer_.get() + end_, limits::kChunkMessageBytesMax};
}

// A program's first waits end in other messages than its later ones: the client has learned then
// what to ask for ahead. The run before the wait is the same.
ChunkMatcher::Verdict ChunkMatcher::Decide(size_t at, size_t bytes, bool ends_run) {
  assert(bytes >= sizeof(MessageHeader) && bytes <= limits::kChunkMessageBytesMax);
  const size_t wait_bytes = ends_run ? PaddedBytes(bytes) : 0;
  const Verdict verdict =
      Judge(at, ends_run || IsAtLimit(part_.messages, Part().size()), wait_bytes);
  if (ends_run || IsAtLimit(run_.messages, BytesOf(run_).size())) EndWholeRun(wait_bytes);
  return verdict;
}

ChunkMatcher::Verdict ChunkMatcher::Judge(size_t at, bool ends, size_t wait_bytes) {
  if (at == 0 && holding_) {
    BeginFollowing();
  } else if (followed_ != nullptr && !Agrees(*followed_, at)) {
    FollowNext();
  }
  if (!holding_) {
    unsent_ = Part().subspan(at);
    if (ends) EndPart(wait_bytes);
    return Verdict::kSend;
  }
  const bool whole = followed_ != nullptr && followed_->messages == part_.messages;
  if (whole && Compare(followed_)) {
    Repeat();
    return Verdict::kRepeat;
  }
  if (!whole && followed_ != nullptr && !ends) return Verdict::kHold;
  EndHolding(false);
  holding_ = false;
  unsent_ = Part();
  if (whole || ends) EndPart(wait_bytes);
  return Verdict::kSend;
}

void ChunkMatcher::EndRun() {
  unsent_ = holding_ ? Part() : std::span<const std::byte>();
  if (!in_run()) return;
  if (holds()) EndHolding(false);
  EndPart(0);
  EndWholeRun(0);
}

void ChunkMatcher::Cut() {
  unsent_ = holding_ ? Part() : std::span<const std::byte>();
  if (part_.messages == 0) return;
  if (holds()) EndHolding(false);
  Learn(part_, 0);
  run_.cut = run_.cut || run_.messages != 0;
  history_.Break();
  BeginPart();
}

void ChunkMatcher::BeginPart() {
  part_ = {.begin = end_};
  holding_ = may_hold_;
  followed_ = nullptr;
  first_ = Chunk::kNone;
  candidates_ = {};
}

// --- matching ------------------------------------------------------------------------------------

void ChunkMatcher::BeginFollowing() {
  candidates_ = table_.BeginningWith(HeaderAt(Part(), 0));
  const uint32_t usual = history_.Next();
  followed_ = usual == RepeatHistory::kNone ? nullptr : &table_.At(usual);
  if (followed_ == nullptr || !Agrees(*followed_, 0)) FollowNext();
  if (followed_ == nullptr) return;
  first_ = table_.NumberOf(*followed_);
  if (followed_->trust.MayHold()) return;
  holding_ = false;
  followed_ = nullptr;
}

// The chunk that was followed first is what the next part like this one is taken for, too.
void ChunkMatcher::EndHolding(bool repeated) {
  if (first_ == Chunk::kNone) return;
  HoldTrust& trust = table_.At(first_).trust;
  if (repeated) {
    trust.OnRepeated(part_.messages);
  } else {
    trust.OnDiffered(part_.messages);
  }
}

void ChunkMatcher::FollowNext() {
  followed_ = nullptr;
  while (followed_ == nullptr && !candidates_.empty()) {
    Chunk& chunk = table_.At(candidates_.front());
    candidates_ = candidates_.subspan(1);
    if (chunk.was_cut && run_.cut) continue;  // such a chunk begins where a run does
    if (BeginsLike(table_.BytesOf(chunk), Part())) followed_ = &chunk;
  }
}

void ChunkMatcher::Repeat() {
  counts_.repeated += part_.messages;
  unsent_ = Part();
  const uint32_t number = table_.NumberOf(*followed_);
  EndHolding(true);
  run_ = {.begin = end_};
  BeginPart();
  history_.OnRepeat(number);
}

bool ChunkMatcher::Compare(Chunk* chunk) {
  const std::byte* const before = table_.BytesOf(*chunk).data();
  const std::byte* const now = Part().data();
  const size_t limit = std::min<size_t>(limits::kChunkPatchesMax, chunk->bytes / 16);
  size_t count = 0;
  for (size_t begin = 0; begin < chunk->bytes; begin += kBlock) {
    const size_t end = std::min<size_t>(begin + kBlock, chunk->bytes);
    if (std::memcmp(before + begin, now + begin, end - begin) == 0) continue;
    for (size_t at = begin; at < end; at += 4) {
      if (std::memcmp(before + at, now + at, 4) == 0) continue;
      if (count == limit) {
        ++chunk->unlike;
        return false;
      }
      patches_[count].word = static_cast<uint32_t>(at / 4);
      std::memcpy(&patches_[count].value, now + at, 4);
      ++count;
    }
  }
  chunk->unlike = 0;
  repeat_ = {chunk->offset, chunk->bytes, static_cast<uint32_t>(count), 0};
  return true;
}

// --- learning ------------------------------------------------------------------------------------

// The messages were sent, or are about to be. Where runs rest, they are learned all the same. A
// chunk of the same shape whose words have changed for good is made anew.
void ChunkMatcher::Learn(const Window& window, size_t wait_bytes) {
  const std::span<const std::byte> run = BytesOf(window);
  if (window.messages < kMessagesMin) return;
  if (!table_.WasSeen(HashOf(run.first(run.size() - wait_bytes)))) return;
  Chunk* same = nullptr;
  for (const uint32_t index : table_.BeginningWith(HeaderAt(run, 0))) {
    Chunk& chunk = table_.At(index);
    if (chunk.bytes == run.size() && BeginsLike(table_.BytesOf(chunk), run)) same = &chunk;
  }
  if (same != nullptr) same->was_cut = same->was_cut && window.cut;
  if (same == nullptr || same->unlike >= kUnlikeMax)
    table_.Add(run, {.messages = window.messages, .was_cut = window.cut}, same);
}

// A run that is not cut is its only part, and ends with that.
void ChunkMatcher::EndPart(size_t wait_bytes) {
  Learn(part_, wait_bytes);
  if (!run_.cut) run_ = {.begin = end_};
  history_.Break();
  BeginPart();
}

// A whole run is not learned while messages are held: the matcher still follows a chunk then, and
// learning may make that chunk anew.
void ChunkMatcher::EndWholeRun(size_t wait_bytes) {
  if (run_.cut && !holds()) Learn(run_, wait_bytes);
  run_ = {.begin = end_};
  if (part_.messages != 0) return;
  end_ = 0;
  run_ = part_ = {};
}

void ChunkMatcher::Forget() {
  assert(!holds());
  table_.Clear();
  history_.Forget();
}

}  // namespace ipc

// Finds runs of messages that a client sends again and again, and says which of them go to the
// worker as one message (ipc/chunks/chunk_format.h). Pure: knows bytes, and no ring.
//
// A run ends where a wait of the program may follow, where a message must be sent by itself, and at
// the limits. So equal iterations have equal runs. A message that is no part of what repeats, such
// as a boundary that the client has found at another place the last time, cuts the run: a part
// between two cuts may become a chunk, and the whole run as well. A run that is seen for the second
// time becomes a chunk, known by what comes before the message that the program waits for. From
// then on the matcher holds messages back while they agree with a chunk, in number, op, length,
// thread and context: words that differ become patches. When the last message of the chunk has
// come, the chunk is repeated. A message that agrees with no chunk ends that, and all messages that
// are held go as they are. So each message goes once and in order, whatever comes. Runs that begin
// like a chunk and differ then, again and again, are not held for a while (hold_trust.h).
//
//             +------------- kSend, kRepeat at the run's end -------------+
//             v                                                           |
//     (run begins) --- first message agrees with a chunk ---> holding ----+--- none agrees
//             |                                                               any longer
//             +--- no chunk begins so --------------------> passing <--------- v
//
// Nimble (papers) records once, inside a framework; here a recording is made for each run that
// repeats, from what the client would send anyway.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "ipc/chunks/chunk_format.h"
#include "ipc/chunks/chunk_table.h"
#include "ipc/chunks/repeat_history.h"

namespace ipc {

class ChunkMatcher {
 public:
  enum class Verdict : uint8_t {
    kHold,    // nothing goes yet
    kSend,    // unsent() goes, as it is
    kRepeat,  // repeat() and patches() go in place of unsent()
  };
  struct Counts {
    uint64_t messages = 0;  // given to the matcher
    uint64_t repeated = 0;  // of them, sent within repeats
  };

  // `area` holds the runs of chunks, outlives the matcher, and is written by the matcher alone.
  explicit ChunkMatcher(std::span<std::byte> area);
  ChunkMatcher(const ChunkMatcher&) = delete;
  // Lets messages of the next runs be held, as at first, or no longer. Without that, chunks are
  // made and none is repeated.
  void MayHold(bool may_hold);

  // Room for the next message, of up to limits::kChunkMessageBytesMax, behind those of the run.
  std::span<std::byte> Room();
  // The message of so many bytes in the room comes next. `ends_run`: a wait may follow. What the
  // verdict speaks of stays valid until the next call.
  // Inline for those that go on in the midst of a chunk.
  Verdict OnMessage(size_t bytes, bool ends_run) {
    const size_t at = Part().size();
    if (bytes % 8 != 0) std::memset(buffer_.get() + end_ + bytes, 0, PaddedBytes(bytes) - bytes);
    end_ += PaddedBytes(bytes);
    ++run_.messages;
    ++part_.messages;
    ++counts_.messages;
    const bool goes_on = holding_ && followed_ != nullptr && at != 0 && !ends_run &&
                         part_.messages < followed_->messages &&
                         !IsAtLimit(run_.messages, BytesOf(run_).size()) && Agrees(*followed_, at);
    return goes_on ? Verdict::kHold : Decide(at, bytes, ends_run);
  }
  // The run ends here: unsent() goes as it is, and then whatever comes next.
  void EndRun();
  // A message goes alone here: unsent() goes as it is before. The run goes on behind that message.
  void Cut();

  // Whole messages, each padded to 8 bytes.
  std::span<const std::byte> unsent() const { return unsent_; }
  bool in_run() const { return run_.messages != 0 || part_.messages != 0; }
  bool holds() const { return holding_ && part_.messages != 0; }
  const ChunkRepeat& repeat() const { return repeat_; }
  // How many messages repeat() stands for. REQUIRES: the last verdict was kRepeat.
  uint32_t repeated_messages() const { return table_.At(history_.last()).messages; }
  std::span<const ChunkPatch> patches() const { return {patches_.data(), repeat_.patches}; }

  // No more chunks are made until Forget().
  bool full() const { return table_.full(); }
  // All chunks go. REQUIRES: no message that repeats one is still to be read; nothing is held.
  void Forget();

  const Counts& counts() const { return counts_; }
  size_t chunks() const { return table_.size(); }

 private:
  // Messages up to the last one.
  struct Window {
    size_t begin = 0;  // in buffer_
    uint32_t messages = 0;
    bool cut = false;
  };
  std::span<const std::byte> BytesOf(const Window& window) const {
    return {buffer_.get() + window.begin, end_ - window.begin};
  }
  std::span<const std::byte> Part() const { return BytesOf(part_); }

  Verdict Decide(size_t at, size_t bytes, bool ends_run);
  Verdict Judge(size_t at, bool ends, size_t wait_bytes);
  // True when the part's message at `at` has the shape of the chunk's message at `at`. A chunk that
  // is longer so far has a message there: chunks consist of whole messages, and those before agreed
  // in length.
  bool Agrees(const Chunk& chunk, size_t at) const {
    return at < chunk.bytes && SameShape(Part().data() + at, table_.BytesOf(chunk).data() + at);
  }
  // Chooses the chunk that the client's new part may repeat. The chunk that came after the same
  // repeats before goes first, then short chunks before long ones. The part is not held where the
  // first of them has been taken for too many parts that differed.
  void BeginFollowing();
  // The part that was held is repeated, or goes as it is.
  void EndHolding(bool repeated);
  // The next shortest chunk that agrees with the part so far; null: there is none.
  void FollowNext();
  // Fills repeat_ and patches_; false: too many words differ.
  bool Compare(Chunk* chunk);
  // Everything of the part goes as the chunk that was followed.
  void Repeat();
  // The last `wait_bytes` are no part of what the matcher knows the messages by when they come
  // again.
  void Learn(const Window& window, size_t wait_bytes);
  void EndPart(size_t wait_bytes);
  void EndWholeRun(size_t wait_bytes);
  void BeginPart();

  ChunkTable table_;
  const std::unique_ptr<std::byte[]> buffer_;
  size_t end_ = 0;     // of what it holds
  Window run_, part_;  // either may begin first: both have the same limits
  bool may_hold_ = true;
  bool holding_ = true;  // none of the part was sent
  std::span<const std::byte> unsent_;
  Chunk* followed_ = nullptr;      // agrees with the part so far
  uint32_t first_ = Chunk::kNone;  // the chunk that was followed first in this part
  // Chunks that begin as the part and were not looked at yet, short ones first.
  std::span<const uint32_t> candidates_;
  RepeatHistory history_;  // up to just before this part
  ChunkRepeat repeat_;
  std::array<ChunkPatch, limits::kChunkPatchesMax> patches_;
  Counts counts_;
};

}  // namespace ipc

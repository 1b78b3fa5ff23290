// A client's and a worker's end of chunks, with a queue between them: what is sent is compared with
// what arrives.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ipc/chunks/chunk_matcher.h"
#include "ipc/chunks/chunk_receiver.h"

namespace ipc {

using Bytes = std::vector<std::byte>;

inline Bytes Message(uint16_t op, std::vector<uint32_t> words) {
  MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + words.size() * 4);
  header.op = op;
  Bytes bytes(header.bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!words.empty()) std::memcpy(bytes.data() + sizeof header, words.data(), words.size() * 4);
  return bytes;
}

// A channel in between: a queue of messages.
class Queue final : public Receiver {
 public:
  explicit Queue(std::deque<Bytes>* messages) : messages_(*messages) {}
  std::span<const std::byte> NextUntrusted(int64_t, int64_t) override {
    if (messages_.empty()) return {};
    last_ = std::move(messages_.front());
    messages_.pop_front();
    return last_;
  }
  std::span<const std::byte> PeekUntrusted(int64_t, int64_t) override {
    return messages_.empty() ? std::span<const std::byte>() : messages_.front();
  }
  bool Pending() override { return !messages_.empty(); }
  bool broken() const override { return false; }

 private:
  std::deque<Bytes>& messages_;
  Bytes last_;
};

class ChunksTest : public testing::Test {
 protected:
  // As a client sends it: in chunks, or `alone`.
  void Send(const Bytes& message, bool ends_run = false) {
    given_.push_back(message);
    const std::span<std::byte> room = matcher_.Room();
    std::memcpy(room.data(), message.data(), message.size());
    const ChunkMatcher::Verdict verdict = matcher_.OnMessage(message.size(), ends_run);
    if (verdict == ChunkMatcher::Verdict::kSend) SendUnsent();
    if (verdict == ChunkMatcher::Verdict::kRepeat) SendRepeat();
  }
  void EndRun() {
    matcher_.EndRun();
    SendUnsent();
  }
  // As a boundary goes.
  void SendCut(const Bytes& message) {
    matcher_.Cut();
    SendUnsent();
    given_.push_back(message);
    sent_.push_back(message);
  }
  void SendAlone(const Bytes& message) {
    EndRun();
    given_.push_back(message);
    sent_.push_back(message);
  }
  void SendUnsent() {
    for (std::span<const std::byte> rest = matcher_.unsent(); !rest.empty();) {
      MessageHeader header;
      std::memcpy(&header, rest.data(), sizeof header);
      sent_.emplace_back(rest.begin(), rest.begin() + header.bytes);
      rest = rest.subspan(PaddedBytes(header.bytes));
    }
  }
  void SendRepeat() {
    const std::span<const ChunkPatch> patches = matcher_.patches();
    MessageHeader header;
    header.flags = kRepeatsChunk;
    header.bytes = static_cast<uint32_t>(sizeof header + sizeof(ChunkRepeat) +
                                         patches.size() * sizeof(ChunkPatch));
    Bytes bytes(header.bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &matcher_.repeat(), sizeof(ChunkRepeat));
    if (!patches.empty())
      std::memcpy(bytes.data() + sizeof header + sizeof(ChunkRepeat), patches.data(),
                  patches.size_bytes());
    sent_.push_back(bytes);
  }
  // Takes everything, and compares it with what was given.
  void Receive() {
    while (true) {
      const std::span<const std::byte> message = receiver_.NextUntrusted(0, 0);
      if (message.empty()) break;
      ASSERT_FALSE(given_.empty()) << "a message too many";
      ASSERT_EQ(Bytes(message.begin(), message.end()), given_.front());
      given_.pop_front();
    }
    ASSERT_FALSE(receiver_.broken());
  }
  // A run of `messages` launches whose last word is `value`.
  void Iterate(uint32_t messages, uint32_t value) {
    for (uint32_t i = 0; i < messages; ++i)
      Send(Message(static_cast<uint16_t>(7 + i), {i, 1, 2, 3, 4, 5, 6, 7, 8, value}),
           i + 1 == messages);
  }
  bool Repeats(const Bytes& message) const {
    MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    return header.flags == kRepeatsChunk;
  }

  std::vector<std::byte> area_ = std::vector<std::byte>(limits::kChunkAreaBytes);
  ChunkMatcher matcher_{area_};
  std::deque<Bytes> sent_;
  std::deque<Bytes> given_;
  ChunkReceiver receiver_{std::make_unique<Queue>(&sent_), area_};
};

}  // namespace ipc

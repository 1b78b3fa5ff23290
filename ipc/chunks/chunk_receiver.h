// The worker's end of chunks: a receiver that hands out a chunk's messages one by one where a
// message of the channel repeats a chunk (ipc/chunks/chunk_format.h).
//
// A message that repeats a chunk counts as taken from the channel when the chunk's last message is
// handed out. So a session that stops in the middle has not taken it (midway()), and no point in
// between can be gone on from. Everything here is untrusted: the run is copied out of the client's
// reach before it is looked at, and must consist of plain messages. Otherwise the receiver is
// broken.
// Thread safety: as ipc::Receiver.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ipc/channel.h"
#include "ipc/chunks/chunk_format.h"

namespace ipc {

class ChunkReceiver final : public Receiver {
 public:
  // `area_untrusted`: limits::kChunkAreaBytes, outlives the receiver.
  ChunkReceiver(std::unique_ptr<Receiver> receiver, std::span<const std::byte> area_untrusted);

  std::span<const std::byte> NextUntrusted(int64_t spin_us, int64_t timeout_us) override;
  std::span<const std::byte> PeekUntrusted(int64_t spin_us, int64_t timeout_us) override;
  bool Pending() override { return InChunk() || receiver_->Pending(); }
  void SetInterrupt(const std::atomic<uint32_t>* flag) override { receiver_->SetInterrupt(flag); }
  bool broken() const override { return broken_ || receiver_->broken(); }
  ChunkReceiver* midway() override { return at_ != 0 && InChunk() ? this : nullptr; }

  // REQUIRES of these: midway().
  // The last message that was handed out, and those behind it in the chunk, each padded to 8 bytes.
  std::span<const std::byte> FromLast() const { return {run_.get() + last_, bytes_ - last_}; }
  // True when the client wants the chunk executed both ways.
  bool verify() const { return verify_; }
  // Where the last message lies in the chunk area.
  uint32_t place() const { return offset_ + static_cast<uint32_t>(last_); }
  // The first `bytes` of FromLast(), whole messages, count as handed out.
  void Skip(size_t bytes);

 private:
  bool InChunk() const { return at_ < bytes_; }
  // Copies the run that the channel's next message names, and patches it. False: it makes no sense.
  bool Open(std::span<const std::byte> message_untrusted);
  bool IsRunOfMessages() const;

  const std::unique_ptr<Receiver> receiver_;
  const std::span<const std::byte> area_untrusted_;
  const std::unique_ptr<std::byte[]> run_;
  uint32_t offset_ = 0;  // of the run in the area
  size_t last_ = 0;      // of the last message that was handed out, in run_
  size_t at_ = 0;        // of the next one
  size_t bytes_ = 0;     // of the run
  bool verify_ = false;
  bool broken_ = false;
};

}  // namespace ipc

#include "ipc/chunks/chunk_receiver.h"

#include <cstring>
#include <utility>

namespace ipc {

ChunkReceiver::ChunkReceiver(std::unique_ptr<Receiver> receiver,
                             std::span<const std::byte> area_untrusted)
    : receiver_(std::move(receiver)),
      area_untrusted_(area_untrusted),
      run_(std::make_unique<std::byte[]>(limits::kChunkBytesMax)) {}

std::span<const std::byte> ChunkReceiver::PeekUntrusted(int64_t spin_us, int64_t timeout_us) {
  if (broken_) return {};
  if (!InChunk()) {
    const std::span<const std::byte> message = receiver_->PeekUntrusted(spin_us, timeout_us);
    if (message.empty() || (HeaderAt(message).flags & kRepeatsChunk) == 0) return message;
    broken_ = !Open(message);
    if (broken_) return {};
  }
  return {run_.get() + at_, HeaderAt({run_.get(), bytes_}, at_).bytes};
}

std::span<const std::byte> ChunkReceiver::NextUntrusted(int64_t spin_us, int64_t timeout_us) {
  const std::span<const std::byte> message = PeekUntrusted(spin_us, timeout_us);
  if (message.empty()) return {};
  if (!InChunk()) return receiver_->NextUntrusted(0, 0);
  last_ = at_;
  Skip(PaddedBytes(message.size()));
  return message;
}

void ChunkReceiver::Skip(size_t bytes) {
  at_ = last_ + bytes;
  if (!InChunk()) receiver_->NextUntrusted(0, 0);  // the message that repeats the chunk
}

bool ChunkReceiver::Open(std::span<const std::byte> message) {
  ChunkRepeat repeat;
  if (message.size() < sizeof(MessageHeader) + sizeof repeat) return false;
  std::memcpy(&repeat, message.data() + sizeof(MessageHeader), sizeof repeat);
  const std::span<const std::byte> patches = message.subspan(sizeof(MessageHeader) + sizeof repeat);
  if (repeat.bytes == 0 || repeat.bytes % 8 != 0 || repeat.bytes > limits::kChunkBytesMax ||
      repeat.offset % 8 != 0 || repeat.offset > area_untrusted_.size() ||
      repeat.bytes > area_untrusted_.size() - repeat.offset ||
      patches.size() != size_t{repeat.patches} * sizeof(ChunkPatch))
    return false;
  std::memcpy(run_.get(), area_untrusted_.data() + repeat.offset, repeat.bytes);
  for (size_t i = 0; i < repeat.patches; ++i) {
    ChunkPatch patch;
    std::memcpy(&patch, patches.data() + i * sizeof patch, sizeof patch);
    if (patch.word >= repeat.bytes / 4) return false;
    std::memcpy(run_.get() + size_t{patch.word} * 4, &patch.value, sizeof patch.value);
  }
  offset_ = repeat.offset;
  verify_ = repeat.verify != 0;
  at_ = 0;
  bytes_ = repeat.bytes;
  if (IsRunOfMessages()) return true;
  bytes_ = 0;
  return false;
}

bool ChunkReceiver::IsRunOfMessages() const {
  for (size_t at = 0; at < bytes_;) {
    if (bytes_ - at < sizeof(MessageHeader)) return false;
    const MessageHeader header = HeaderAt({run_.get(), bytes_}, at);
    if (header.bytes < sizeof header || header.flags != 0 ||
        PaddedBytes(header.bytes) > bytes_ - at)
      return false;
    at += PaddedBytes(header.bytes);
  }
  return true;
}

}  // namespace ipc

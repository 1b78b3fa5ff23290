// A message that the client sends again and again with other bytes at its end alone, such as a
// launch with other parameters. The pipeline copies the head of the first such message, in place of
// looking up its handles and encoding its arguments once more.
//
// Thread safety: none; a message belongs to one thread, whose number is in the head.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ipc/message.h"
#include "shim/iterations/history.h"

namespace shim {

class KnownMessage {
 public:
  static constexpr size_t kHeadBytesMax = 128;

  // Writes the message's end, whose room is as long as the end of the message that was learned.
  using WriteEnd = void (*)(void* argument, std::span<std::byte> room);

  explicit operator bool() const { return head_bytes_ != 0; }
  size_t bytes() const { return head_bytes_ + end_bytes_; }
  // What the detector of iterations is told of each such message.
  const iterations::Op& operation() const { return operation_; }

  // Unknown from now on. The next message may be learned, and ends in `end`, which lives until
  // then.
  void Await(std::span<const std::byte> end) {
    head_bytes_ = 0;
    end_ = end;
  }
  // `message` was encoded; one that does not end as announced, or whose head is too long, stays
  // unknown.
  void Learn(std::span<const std::byte> message, const iterations::Op& operation) {
    if (end_.size() > message.size() || message.size() - end_.size() > kHeadBytesMax) return;
    const std::span<const std::byte> head = message.first(message.size() - end_.size());
    const std::span<const std::byte> end = message.subspan(head.size());
    if (!end.empty() && std::memcmp(end.data(), end_.data(), end.size()) != 0) return;
    std::memcpy(head_.data(), head.data(), head.size());
    head_bytes_ = static_cast<uint32_t>(head.size());
    end_bytes_ = static_cast<uint32_t>(end.size());
    operation_ = operation;
  }

  // REQUIRES: it is known. `room`: of bytes() at least.
  void Write(std::span<std::byte> room, WriteEnd write_end, void* argument) const {
    std::memcpy(room.data(), head_.data(), head_bytes_);
    write_end(argument, room.subspan(head_bytes_, end_bytes_));
  }

 private:
  uint32_t head_bytes_ = 0;  // 0: unknown
  uint32_t end_bytes_ = 0;
  iterations::Op operation_;
  std::span<const std::byte> end_;  // of the message to be learned
  alignas(8) std::array<std::byte, kHeadBytesMax> head_;
};

}  // namespace shim

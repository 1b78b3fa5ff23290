// Predicts which chunk a client repeats next, from the chunks that it has repeated just before, as
// a processor predicts branches: a long iteration repeats one chunk several times, and then
// another. A prediction may be wrong; it is where the matcher (chunk_matcher.h) looks first.
//
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ipc {

class RepeatHistory {
 public:
  static constexpr uint32_t kNone = ~0u;

  RepeatHistory() { Forget(); }

  // The chunk that came at such a place the last time; kNone: unknown.
  uint32_t Next() const { return next_[Place()]; }
  // REQUIRES: OnRepeat was the last event.
  uint32_t last() const { return last_; }

  void OnRepeat(uint32_t chunk) {
    next_[Place()] = chunk;
    if (chunk != last_) {
      before_ = last_;
      last_ = chunk;
      in_a_row_ = 0;
    }
    ++in_a_row_;
  }
  // The client's next message is part of no repeat.
  void Break() { before_ = last_ = kNone, in_a_row_ = 0; }
  // The chunks' numbers mean nothing any more.
  void Forget() {
    next_.fill(kNone);
    Break();
  }

 private:
  static constexpr int kPlacesBits = 8;

  size_t Place() const {
    const uint64_t place = (uint64_t{before_} * 0x85ebca6b + last_) * 0xc2b2ae35 + in_a_row_;
    return static_cast<size_t>(place * 0x9e3779b97f4a7c15 >> (64 - kPlacesBits));
  }

  std::array<uint32_t, size_t{1} << kPlacesBits> next_;
  // Where the client is: so many repeats of the last chunk, after one of the chunk before.
  uint32_t last_ = kNone;
  uint32_t before_ = kNone;
  uint32_t in_a_row_ = 0;
};

}  // namespace ipc

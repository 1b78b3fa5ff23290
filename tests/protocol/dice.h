// Where all chance of a simulated world comes from: one word a step, so that a step does the same
// whatever other steps are left out of a trace. Thread safety: one thread.
#pragma once

#include <cstdint>

namespace protocol {

// The next word of a sequence (splitmix64).
inline uint64_t NextWord(uint64_t* state) {
  uint64_t word = *state += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

class Dice {
 public:
  explicit Dice(uint64_t word) : state_(word) {}
  // In [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) { return NextWord(&state_) % bound; }
  bool OneIn(uint64_t chances) { return Below(chances) == 0; }

 private:
  uint64_t state_;
};

}  // namespace protocol

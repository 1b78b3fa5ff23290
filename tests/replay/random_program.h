// A random program of iterations: statements that do the same each time, change their arguments,
// repeat, grow from iteration to iteration, or are left out at times. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "replay/op_stream.h"

namespace replay::testing {

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, Callees* callees);

  // The next iteration. `rare`: in a thousand statements, how many do what they have never done.
  OpStream Iteration(uint64_t rare);

 private:
  // How a word of the arguments changes.
  enum class Change : uint8_t { kNever, kEachTime, kEachIteration };
  struct Statement {
    OpKey key;
    std::vector<std::byte> arguments;
    std::vector<Change> changes;   // by word; empty: the statement is a block
    std::vector<Statement> block;  // repeated
    uint64_t times = 1, more = 0;  // rounds, and how many more each iteration, or at random
    bool grows = false;
    uint64_t percent = 100;            // how often it is done at all
    std::vector<Statement> otherwise;  // in its place
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  std::vector<Statement> Block(int depth);
  Statement Call();
  void Run(const std::vector<Statement>& block, uint64_t rare, OpStream* out);
  void RunCall(const Statement& call, uint64_t rare, OpStream* out);

  std::mt19937_64 random_;
  Callees* const callees_;
  std::vector<uint32_t> pool_;
  std::vector<Statement> main_;
  uint64_t iteration_ = 0;
};

}  // namespace replay::testing

// Whether the iterations of a session are replayed, decided by their measured times.
//
// The gate lets some iterations pass in which runs are learned, and then compares: blocks of
// iterations that are forwarded take turns with blocks that are replayed, so that both see the same
// machine. Each pair of neighbouring blocks gives a ratio of medians, and the median of all ratios
// decides. Replay begins when it is faster by kEnter, and goes on until it is slower: between the
// two, the way stays as it was. The gate compares again after a while, and ever less often while
// the verdict stays the same.
//
//     kLearning -> kComparing -> kReplaying | kForwarding -> kComparing -> ...
//
// As long as there is no verdict of times, a new loop body leads back to kLearning. Where an
// earlier start of the program came to a verdict on the body that runs (shim/kept_verdicts.h), the
// gate goes to that verdict's state at once, from any state.
//
// Nimble (papers) replays always: its user has asked for that. Here a program was asked nothing.
// Thread safety: none; pure.
#pragma once

#include <cstdint>
#include <vector>

namespace shim {

class BenefitGate {
 public:
  enum class State : uint8_t { kLearning, kComparing, kReplaying, kForwarding };

  struct Iteration {
    int64_t took_ns = 0;    // looked at in kComparing alone
    uint64_t repeated = 0;  // messages that were sent as repeats
  };
  // An iteration has ended. Says whether the next one is replayed.
  bool OnIteration(const Iteration& iteration);

  // The program has come to a loop body that it did not have before. As long as there is no verdict
  // of times, the gate learns anew: the detector of iterations may have followed a part of the
  // loop, and times of parts and of whole iterations can't be compared.
  void OnNewBody();
  // An earlier start of the program came to this verdict. It holds until the next comparison.
  void TakeVerdict(bool replays, double ratio);

  bool replays() const { return replays_; }
  State state() const { return state_; }
  // The verdict of the last comparison, or the one taken over: the time of a replayed iteration to
  // that of a forwarded one. 0: there was none, or nothing was repeated in it.
  double ratio() const { return ratio_; }

  static constexpr double kEnter = 0.98, kLeave = 1.0;
  static constexpr uint32_t kLearn = 8;  // iterations
  static constexpr uint32_t kBlock = 6;  // iterations, of which the first is not measured
  static constexpr uint32_t kPairs = 5;  // of blocks
  static constexpr uint32_t kFirstRest = 1024, kLongestRest = 65'536;  // iterations
  static constexpr uint32_t kShortRest = 64;    // the first one where nothing was repeated
  static constexpr uint32_t kNewBodiesMax = 8;  // at which the gate learns anew

 private:
  void BeginComparing();
  void EndBlock();
  void Decide();

  State state_ = State::kLearning;
  bool replays_ = true;
  bool was_replaying_ = false;  // before the comparison
  uint32_t left_ = kLearn;      // iterations until the state, or the block, ends
  uint32_t rest_ = 0;           // iterations of the last rest
  uint32_t new_bodies_ = 0;
  uint64_t repeated_ = 0;           // in this comparison
  std::vector<int64_t> times_ns_;   // of this block
  std::vector<int64_t> forwarded_;  // medians of blocks
  std::vector<int64_t> replayed_;
  double ratio_ = 0;
};

}  // namespace shim

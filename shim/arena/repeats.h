// Which iterations the running one has been equal to so far, by what is allocated and freed.
//
// An iteration tells only at its end how many freed bytes may wait (freed_queue.h) without a larger
// lane. So the lane tries an iteration that has come twice in a row. From then on as many bytes
// wait in each iteration that begins like it. When the iteration deviates, another known iteration
// that it equals decides; without one, no block waits. A program with several bodies (training and
// validation) so keeps the addresses of each.
//
// Pure, bounded: kKnownMax iterations of kOpsMax operations. Thread safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shim::arena {

class Repeats {
 public:
  static constexpr size_t kKnownMax = 4;
  static constexpr size_t kOpsMax = size_t{1} << 14;

  struct Op {
    enum class Kind : uint8_t {
      kTake,  // `value` bytes
      kFree,  // the block may wait
      kFreeAtOnce,
      kWait,  // the program has waited for the device
    };
    Kind kind = Kind::kTake;
    bool is_older = false;  // the block is from before this iteration
    uint64_t value = 0;     // which block of this iteration, or the address of an older one
    bool operator==(const Op&) const = default;
  };
  // The blocks that are live where an iteration begins.
  struct Start {
    uint64_t live_bytes = 0;
    uint64_t live_end = 0;
    bool operator==(const Start&) const = default;
  };
  struct Iteration {
    Start start;
    std::vector<Op> ops;
    bool operator==(const Iteration&) const = default;
  };

  void OnOp(const Op& op);
  // How many bytes may wait: as the first known iteration says that is equal so far.
  uint64_t bytes_max() const;
  // The iteration ends, and the next one begins with `next`. The iteration, when it is to be tried:
  // it was not known, has come twice, and would begin in the same way again. Null: nothing is to be
  // tried. Valid until the next call.
  const Iteration* OnBoundary(const Start& next);
  // In repeats of the iteration `bytes_max` freed bytes may wait. The running iteration may be one.
  // REQUIRES: no operation since the boundary.
  void Learn(const Iteration& iteration, uint64_t bytes_max);
  void Forget();

 private:
  struct Known {
    Iteration iteration;
    uint64_t bytes_max = 0;
    bool is_equal = false;  // the running iteration, so far
  };

  bool Follows() const;

  std::vector<Known> known_;  // the oldest first
  Iteration running_;
  Iteration last_;        // the one before
  bool is_long_ = false;  // the running iteration has more than kOpsMax operations
};

}  // namespace shim::arena

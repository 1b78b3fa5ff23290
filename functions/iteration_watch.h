// Tells, in the stream of a program's calls, when an iteration that repeats is over, before the
// next one begins.
//
// An iteration is what lies between two boundaries. Its shape is the row of its calls without their
// arguments. When a shape has come several times in a row, the next iteration is expected to have
// the shape, too: it is over with its last call. Whether it was is known at the next call, which
// comes with a boundary or without.
//
// Thread safety: none; pure.
#pragma once

#include <cstdint>

namespace functions {

class IterationWatch {
 public:
  static constexpr uint32_t kRepeatsMin = 3;

  // A call; `token` is what tells calls of different shapes apart. With `boundary` an iteration
  // begins with it.
  void OnCall(uint64_t token, bool boundary);

  // Whether the calls since the boundary are those of the shape that was expected.
  bool IsOver() const { return IsExpected() && current_ == last_; }
  // Whether the same shape has come kRepeatsMin times in a row, up to the last boundary.
  bool IsExpected() const { return repeats_ >= kRepeatsMin; }
  // How many iterations there were, up to the last boundary.
  uint64_t iterations() const { return iterations_; }
  // The shape of the last whole iteration.
  uint64_t shape() const { return last_.hash; }

 private:
  struct Shape {
    uint64_t calls = 0;
    uint64_t hash = 0;
    bool operator==(const Shape&) const = default;
  };

  Shape current_, last_;
  uint32_t repeats_ = 0;
  uint64_t iterations_ = 0;
};

}  // namespace functions

// How much work an iteration is, by the one before it. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <utility>

namespace worker {

class IterationWork {
 public:
  void Add() { ++now_; }
  void End() { before_ = std::exchange(now_, 0); }
  // This iteration has had as much work as the one before.
  bool is_complete() const { return before_ != 0 && now_ >= before_; }

 private:
  uint64_t now_ = 0;
  uint64_t before_ = 0;
};

}  // namespace worker

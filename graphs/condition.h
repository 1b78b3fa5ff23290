// The value that a conditional node of a graph asks, and the rule which body the node runs then.
//
// A condition belongs to a graph. Kernels set it by its name, CUDA's CUgraphConditionalHandle. A
// name lives as long as the condition is known to a graph or to what was instantiated from one, and
// is never used twice. Thread safety: all functions of both classes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"

namespace graphs {

// In the order of CUgraphConditionalNodeType.
enum class Branch : uint8_t { kIf, kWhile, kSwitch };

// True when a node of this kind may have so many bodies.
bool MayHaveBodies(Branch kind, size_t bodies);
// The body to run for this value of the condition; nothing when there is none. After the body of a
// kWhile the node asks again.
std::optional<size_t> BodyFor(Branch kind, size_t bodies, uint32_t value);

class Condition {
 public:
  struct Terms {
    uint64_t context = 0;  // by its number or handle
    uint32_t default_value = 0;
    bool assigns_default = false;  // each launch begins with the default value
  };

  Condition(uint64_t name, const Terms& terms) : name_(name), terms_(terms) {}
  Condition(const Condition&) = delete;

  uint64_t name() const { return name_; }
  const Terms& terms() const { return terms_; }

  uint32_t value() const { return value_.load(std::memory_order_relaxed); }
  void Set(uint32_t value) { value_.store(value, std::memory_order_relaxed); }
  // A launch of the graph begins.
  void BeginLaunch() {
    if (terms_.assigns_default) Set(terms_.default_value);
  }

  // A node's content takes the condition for itself, for as long as `taker` lives. False: another
  // node's content has the condition.
  bool Take(const std::shared_ptr<void>& taker) EXCLUDES(mutex_);
  bool IsTaken() const EXCLUDES(mutex_);

 private:
  const uint64_t name_;
  const Terms terms_;
  std::atomic<uint32_t> value_{0};
  mutable base::Mutex mutex_;
  std::weak_ptr<void> taker_ GUARDED_BY(mutex_);
};

// The conditions that live, by name. It outlives all of them.
class Conditions {
 public:
  // `tag`: what all names begin with, in the topmost byte.
  explicit Conditions(uint8_t tag) : tag_(uint64_t{tag} << 56) {}
  Conditions(const Conditions&) = delete;

  std::shared_ptr<Condition> Create(const Condition::Terms& terms) EXCLUDES(mutex_);
  // Null when the name is no living condition's.
  std::shared_ptr<Condition> Find(uint64_t name) const EXCLUDES(mutex_);

 private:
  void Forget(uint64_t name) EXCLUDES(mutex_);

  const uint64_t tag_;
  mutable base::Mutex mutex_;
  std::unordered_map<uint64_t, std::weak_ptr<Condition>> conditions_ GUARDED_BY(mutex_);
  uint64_t last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace graphs

// The iterations that a program is known to make: each a sequence of operations, told apart while
// it runs by prefix hashes. A job has several: a training step, its last and smaller batch, a
// validation pass, an early exit.
//
// Bounded: kMax bodies of kOpsMax operations in all; the one unused for longest goes.
// Thread safety: none; std only, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shim/iterations/history.h"

namespace shim::iterations {

struct Body {
  uint32_t id = 0;  // from 1; 0: free
  std::vector<uint32_t> ops;
  std::vector<uint64_t> prefix;      // hash of the first i operations
  std::vector<bool> synced;          // the host waits before operation i
  bool synced_start = false;         // it begins after the host has waited
  bool unique_start = false;         // its first operation is nowhere inside a body
  bool unique_synced_start = false;  // the same of "first operation, the host having waited"
  uint64_t last_use = 0;
  uint64_t uses = 0;

  size_t size() const { return ops.size(); }
};

class Bodies {
 public:
  static constexpr size_t kMax = 32;
  static constexpr size_t kOpsMax = 2 * History::kSize;
  static constexpr int kNone = -1;

  // The operations [begin, begin + count) of the history as a body; its index, also when it is
  // known already. kNone when it is too long. REQUIRES: they can be read.
  int Learn(const History& history, uint64_t begin, uint64_t count);
  void Clear();

  const Body& at(int index) const { return bodies_[static_cast<size_t>(index)]; }
  void Use(int index);

  // The most used body that begins with this operation.
  int Starting(uint32_t identity) const;
  // Whether some body begins with this operation; may say yes wrongly, fast.
  bool MayStart(uint32_t identity) const { return (starts_ >> (identity & 63) & 1) != 0; }
  // Whether an operation begins an iteration wherever it comes.
  bool AlwaysStarts(const Op& op) const;
  // Another body whose first `count` operations have this hash, the longest-used one.
  int WithPrefix(size_t count, uint64_t hash) const;

  size_t count() const { return count_; }
  uint32_t made() const { return made_; }

 private:
  int FindSame(uint64_t hash, size_t count) const;
  int Room(size_t count);
  void Forget(int index);
  void FindUniqueStarts();  // after each change

  std::vector<Body> bodies_;
  size_t count_ = 0;
  size_t ops_ = 0;
  uint32_t made_ = 0;
  uint64_t uses_ = 0;
  uint64_t starts_ = 0;  // a bit per first operation
};

}  // namespace shim::iterations

// Which allocations die within their iteration, learned from the iterations before.
//
// An allocation is known by its ordinal in the iteration and its size. When two iterations in a row
// agree about what became of it, that decides. Where they do not (a new ordinal or size, or one
// that now lives and now dies), its call site decides: a hash of the calling frames, which the
// caller computes only when asked. A prediction is never trusted: an allocation that outlives its
// boundary corrects its site (lanes.md; Salus 3.2.2). Everything is persistent until learned
// otherwise.
//
// Pure, bounded: at most kEntriesMax keys; when they are used up it starts learning anew. Thread
// safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace shim::arena {

class Sites {
 public:
  static constexpr size_t kEntriesMax = 1 << 17;
  static constexpr int kRounds = 2;   // in a row that decide
  static constexpr int kPenalty = 8;  // rounds that a site must prove itself after a wrong guess
  static constexpr uint64_t kNoSite = 0;

  enum class Class : uint8_t { kUndecided, kPersistent, kEphemeral };

  // An allocation of this iteration, as it is remembered until the boundary. They count upwards.
  using Birth = uint64_t;
  static constexpr Birth kNoBirth = ~Birth{0};

  // What ordinal and size say about the next allocation. kUndecided: pass its call site to Decide.
  Class Ask(uint64_t bytes) const;
  // As above with the call site (kNoSite: unknown, then the size alone stands for it).
  Class AskSite(uint64_t bytes, uint64_t site) const;

  // The next allocation happens. `site`: kNoSite unless it was asked for. `ephemeral`: how it was
  // placed.
  Birth OnAllocate(uint64_t bytes, uint64_t site, bool ephemeral);
  // Whether it was born in this iteration.
  bool IsYoung(Birth birth) const { return birth != kNoBirth && birth >= first_; }
  // It dies. REQUIRES: IsYoung(birth).
  void OnFree(Birth birth) { births_[birth - first_].dead = true; }

  // The iteration ended before `next` was born: what is older and not dead outlived it. What came
  // later belongs to the next iteration, whose first operation was not sent yet.
  void OnBoundary(Birth next);
  // Ephemerals of this iteration, born before `next`, that are not dead.
  std::vector<Birth> Outlived(Birth next) const;
  // Iterations are no longer recognised: what happened since the boundary teaches nothing.
  void OnLost();

  // The oldest of this iteration, and the one that comes next.
  Birth first() const { return first_; }
  Birth next() const { return first_ + births_.size(); }
  uint64_t wrong() const { return wrong_; }  // ephemerals that outlived their iteration

 private:
  struct Entry {
    int8_t streak = 0;   // rounds in a row: > 0 died in their iteration, < 0 outlived it
    bool burnt = false;  // was placed as an ephemeral and outlived, less than kPenalty rounds ago
  };
  struct Record {
    uint64_t place = 0;  // key of ordinal and size
    uint64_t site = 0;   // key of site and size; 0: not asked for
    bool dead = false;
    bool ephemeral = false;
  };

  static uint64_t Key(uint64_t kind, uint64_t a, uint64_t b);
  static Class ClassOf(const Entry& entry);
  Class Find(uint64_t key) const;
  void Learn(uint64_t key, const Record& record);

  std::unordered_map<uint64_t, Entry> entries_;
  std::vector<Record> births_;
  Birth first_ = 0;
  uint64_t wrong_ = 0;
};

}  // namespace shim::arena

// Finds where iterations begin, from the stream of a program's device work alone.
//
// What Salus read from a framework's session, we infer (Salus 2.3 to 2.5; the rules are explained
// in docs/iterations.md):
//   1. a period that repeats is a body: after two equal rounds between which the host waits, or
//   five
//      when nothing but repetition speaks for it;
//   2. the cut between rounds is where memory is lowest and the host has just waited;
//   3. from then on the stream is followed body by body. What deviates is cut at the next certain
//      start, and is a known body afterwards; a new period makes a new body. A job has several;
//   4. rounds that turn out to be parts of a larger one (micro-batches, layers) make room for it.
//
// Pure: the answer depends on the operations alone. O(1) amortised per operation, bounded memory.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/iterations/bodies.h"
#include "shim/iterations/history.h"
#include "shim/iterations/period.h"

namespace shim::iterations {

struct Decision {
  bool boundary = false;  // an iteration ends before this operation
  uint32_t body = 0;      // the one that ended; 0: none that is known
};

class Detector {
 public:
  // To be asked about every operation before it is sent, in order. Inline for those that go on in
  // a known body: they begin and complete nothing.
  Decision Next(const Op& op) {
    if (!GoesOn(op)) return Judge(op);
    ++place_.next;
    place_.computes = place_.computes || op.computes;
    if (op.synced) last_wait_ = history_.size();
    history_.Push(op);
    finder_.Advance(history_, false);
    if (finder_.period() >= widens_at_ && history_.size() >= next_try_ && finder_.repeats())
      TryWiden();
    return {};
  }

  // In place of Next(), for a program that says itself where iterations begin: before this
  // operation, when `boundary` is set.
  void Note(const Op& op, bool boundary);

  // The operations of the iteration that ended last, [begin, end) of history().
  struct Stretch {
    uint64_t begin = 0, end = 0;
  };
  const Stretch& last() const { return last_; }
  const History& history() const { return history_; }

  bool locked() const { return locked_; }
  size_t bodies() const { return bodies_.count(); }
  uint64_t boundaries() const { return boundaries_; }

 private:
  // Where the stream is relative to what is known.
  struct Place {
    int body = Bodies::kNone;  // kNone: nothing known goes on like this
    size_t next = 0;           // operations of it that have come
    uint64_t begin = 0;        // of the iteration
    bool computes = false;     // something since then
    // The last body that was complete since `begin`, and what came after it.
    int complete = Bodies::kNone;
    uint64_t tail = 0;      // where the tail begins
    uint64_t tail_cut = 0;  // the last wait of the host in the tail before it computes; 0: none
    bool tail_computes = false;
  };

  struct Cut {
    uint64_t position = 0;
    uint64_t low = 0;  // memory up to here is as low as it gets
    bool synced = false;
    bool fits = false;
  };

  // Whether the operation is in the midst of the body that is followed, after no other that was
  // complete.
  bool GoesOn(const Op& op) const {
    if (!locked_ || place_.body == Bodies::kNone || place_.complete != Bodies::kNone) return false;
    const std::vector<uint32_t>& ops = bodies_.at(place_.body).ops;
    return place_.next + 1 < ops.size() && ops[place_.next] == op.identity;
  }
  Decision Judge(const Op& op);
  void SetPrimary(int body);
  bool Starts(const Op& op) const;
  bool EndsLikeABody() const;
  Decision Finish();
  void Begin(const Op& op);
  void Follow(const Op& op);
  void NoteTail(const Op& op);

  bool Computes(uint64_t begin, uint64_t end) const;
  Cut FindCut() const;
  bool ComesBack(uint64_t cut) const;
  void TryLock();
  void TryWiden();
  bool IsPartOf(const Body& part, const Cut& cut) const;
  std::vector<uint64_t> Beginnings(const Cut& cut, uint64_t begin, uint64_t end) const;
  void LockAt(const Cut& cut);

  History history_;
  PeriodFinder finder_;
  Bodies bodies_;
  Place place_;
  Stretch last_;
  bool locked_ = false;
  int primary_ = Bodies::kNone;      // the body last locked by its period
  uint64_t widens_at_ = UINT64_MAX;  // periods that may be a larger round of it
  uint64_t next_try_ = 0;
  uint64_t last_wait_ = 0;  // the last operation before which the host waited
  uint64_t boundaries_ = 0;
};

}  // namespace shim::iterations

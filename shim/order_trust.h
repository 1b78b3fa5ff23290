// When a chunk is worth a look, and whether orders that were proven still hold (shim/run_orders.h).
//
// A proof rests on facts, which have a version. Orders of one version alone are with the worker, so
// one comparison at each repeat is for all of them. When the version has changed, or another worker
// serves the session, the orders are taken back and every chunk is looked at again, after twice as
// many repeats as before: a program whose facts change all the time costs little.
//
// Pure. Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace shim {

class OrderTrust {
 public:
  struct Facts {
    uint64_t version = 0;
    uint32_t worker = 0;  // which worker has the orders (Pipeline::generation)
    bool operator==(const Facts&) const = default;
  };
  struct Repeat {
    bool take_back = false;  // the orders that the worker has do not hold for this repeat
    bool look = false;       // the chunk is worth a look now
  };
  static constexpr uint32_t kPatience = 8;  // repeats before a look
  static constexpr uint32_t kPatienceMax = 4096;

  // A chunk, by its offset, is about to be repeated.
  Repeat OnRepeat(uint32_t chunk, const Facts& now) {
    Repeat repeat;
    repeat.take_back = given_ && given_facts_ != now;
    if (repeat.take_back) {
      given_ = false;
      LookAgain();
    }
    repeat.look = ++repeats_[chunk] == patience_;
    return repeat;
  }
  // Other chunks come in the places of all. True: the worker has orders, which must be taken back.
  bool OnForget() {
    StartAgain();
    return std::exchange(given_, false);
  }
  // A chunk of this epoch was proven to have an order, from facts of this version. True: the worker
  // may have it.
  bool MayGive(uint64_t epoch, uint64_t version, const Facts& now) {
    if (epoch != epoch_) return false;
    if (version != now.version || (given_ && given_facts_ != now)) {
      LookAgain();
      return false;
    }
    given_ = true;
    given_facts_ = now;
    return true;
  }
  // Grows when what was found of chunks before is of no use any more.
  uint64_t epoch() const { return epoch_; }

 private:
  void LookAgain() {
    patience_ = std::min(2 * patience_, kPatienceMax);
    StartAgain();
  }
  void StartAgain() {
    repeats_.clear();
    ++epoch_;
  }

  absl::flat_hash_map<uint32_t, uint32_t> repeats_;  // by chunk
  uint32_t patience_ = kPatience;
  uint64_t epoch_ = 0;
  bool given_ = false;  // the worker has orders
  Facts given_facts_;   // what they rest on
};

}  // namespace shim

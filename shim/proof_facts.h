// What proofs about the program's launches rest on (shim/run_orders.h): which memory an address
// means, and which kernel a name.
//
// Each change counts, also one that no proof has looked at. A proof holds for launches that were
// sent while the count stayed as it was. Thread safety: all functions.
#pragma once

#include <atomic>
#include <cstdint>

namespace shim {

class ProofFacts {
 public:
  static uint64_t version() { return version_.load(std::memory_order_seq_cst); }
  // After the change.
  static void Changed() { version_.fetch_add(1, std::memory_order_seq_cst); }

 private:
  inline static std::atomic<uint64_t> version_{0};
};

}  // namespace shim

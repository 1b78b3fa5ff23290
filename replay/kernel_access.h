// What a kernel reads, writes and updates, found by data flow over its PTX.
//
// Two launches may run at the same time, or change their order, only where neither writes what the
// other touches. CUDA says nothing of that: kernels get bare addresses. This analysis follows the
// addresses from the kernel's parameters and its module's variables to each load, store and atomic,
// through calls, local and shared memory. It never says too little: an access that the analysis
// cannot attribute makes the whole kernel `unknown`, with the reason. The analysis relies on two
// rules of C and CUDA: an address stays within its allocation, and a sum holds at most one address
// (origins.h).
//
// Flow-insensitive over 64-bit and narrower registers; linear in the code but for the height of the
// lattice. Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/address_expression.h"
#include "replay/kernel_stores.h"
#include "replay/origins.h"

namespace softgpu::ptx {
class KernelImpl;
}

namespace replay {

enum Use : uint8_t {
  kReads = 1,
  kWrites = 2,
  kUpdates = 4,  // an atomic: reads and writes
};

// Where an address may come from.
struct Origin {
  enum class Kind : uint8_t { kParameter, kVariable };
  Kind kind = Kind::kParameter;
  uint32_t index =
      0;  // kParameter: the offset of its 8 bytes; kVariable: of PtxModule::variables()
  bool operator==(const Origin&) const = default;
};

struct Access {
  uint8_t use = 0;  // of Use
  uint32_t bytes = 0;
  Origins address;
  TermIndex range = kNoTerm;  // of its address, where that is known
  // All of them hold for each thread that gets there. Empty: the access has no range, or is under
  // no condition that is known.
  std::vector<Condition> conditions;
  int line = 0;  // of the PTX
};

struct KernelAccess {
  std::string kernel;
  // Why not all accesses are known, with the line of the PTX. Empty: they are.
  std::string unknown;
  std::vector<Origin> origins;  // bit i of an OriginSet is origins[i]
  // Of global memory; those alike are one.
  std::vector<Access> accesses;
  OriginSet escapes = 0;  // origins whose bits are stored in memory
  OriginSet movable = 0;  // parameters that are addresses and nothing else (movable_parameters.h)
  std::vector<CertainStore> stores;  // those of the accesses that certainly happen
  Expressions expressions;           // of accesses and stores
};

// From so many on, accesses of the same origins and use are one access without a range.
inline constexpr size_t kAccessesMax = 256;

KernelAccess Analyse(const softgpu::ptx::KernelImpl& kernel);

}  // namespace replay

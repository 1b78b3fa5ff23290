// The life of contexts: creating them, primary ones with their count, and destroying all that is in
// one. Thread safety: all functions.
#pragma once

#include <cstdint>

#include "ipc/calls/vendor.h"

namespace shim {

class Contexts {
 public:
  static CUresult Create(int ordinal, unsigned flags, uint64_t* value);
  // Waits for the work in it, destroys its streams, events, modules and allocations, then the
  // context.
  static CUresult Destroy(uint64_t value);

  static CUresult RetainPrimary(int ordinal, uint64_t* value);
  // 201 when it is not retained.
  static CUresult ReleasePrimary(int ordinal);
  // Destroys all that is in it; retained it stays.
  static CUresult ResetPrimary(int ordinal);
  static void SetPrimaryFlags(int ordinal, unsigned flags);
  static void PrimaryState(int ordinal, unsigned* flags, int* active);
};

}  // namespace shim

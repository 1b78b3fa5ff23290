// The names that a library of the vendor exports and no public header declares: version 1 of its
// interface, and what only other libraries of the vendor use. A program that needs only to load
// finds them; a call is refused, whatever its arguments. To be followed by the list of
// NAME(symbol). No vendor header may be included beside this: it would rename the old names.
#pragma once

#include "shim/unlisted.h"

namespace shim {

inline constexpr uint32_t kBlasNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED

}  // namespace shim

#define NAME(symbol)                                                                           \
  extern "C" __attribute__((visibility("default"))) uint32_t unlisted_##symbol() asm(#symbol); \
  uint32_t unlisted_##symbol() {                                                               \
    return shim::DenyUnlisted(#symbol, "no public header declares it, so it is not supported", \
                              shim::kBlasNotSupported);                                        \
  }

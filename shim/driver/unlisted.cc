// The driver's names that have no row in the call table: they are there, and refused. No vendor
// header may be included here: it would rename some of them.
#include "shim/unlisted.h"

namespace {

constexpr uint32_t kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

#define NAME(symbol, reason)                                                                   \
  extern "C" __attribute__((visibility("default"))) uint32_t unlisted_##symbol() asm(#symbol); \
  uint32_t unlisted_##symbol() { return shim::DenyUnlisted(#symbol, reason, kNotSupported); }
#include "ipc/calls/driver_unlisted.inc"

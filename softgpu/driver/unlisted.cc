// The driver's names that have no row in the call table: they are there, and refused. No vendor
// header may be included here: it would rename some of them.
#include "softgpu/driver/unlisted.h"

#define NAME(symbol, reason)                                                                   \
  extern "C" __attribute__((visibility("default"))) unsigned unlisted_##symbol() asm(#symbol); \
  unsigned unlisted_##symbol() { return softgpu::RefuseUnlisted(#symbol, reason); }
#include "ipc/calls/driver_unlisted.inc"

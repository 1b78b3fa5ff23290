// Exports every REFUSED row of exports.inc. Includes no CUDA header, because there the names have
// parameters: a refusal ignores whatever it is given.
#include "runtime/refused.h"

#define CALL(name, needs)
#define FORWARD(name, driver_name, needs)
#define PRIVATE(name, needs)
#define PTSZ(name, body, needs)
#define PTDS(name, waiting, async_body)
#define REFUSED(name, reason)                                    \
  extern "C" __attribute__((visibility("default"))) int name() { \
    static std::atomic<bool> said = false;                       \
    return runtime::Refuse(#name, reason, &said);                \
  }
#include "runtime/exports.inc"
#undef CALL
#undef FORWARD
#undef PRIVATE
#undef PTSZ
#undef PTDS
#undef REFUSED

// The names that libcublasLt.so.13 exports and no public header declares: version 1 of the
// interface, and what only other libraries of the vendor use. A program that needs only to load
// finds them; a call is refused, whatever its arguments. No vendor header may be included here: it
// would rename the old names.
#include <cstdint>

namespace shim {
uint32_t DenyUnlisted(const char* name, uint32_t status);
}

namespace {
constexpr uint32_t kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
}

#define NAME(symbol)                                                                           \
  extern "C" __attribute__((visibility("default"))) uint32_t unlisted_##symbol() asm(#symbol); \
  uint32_t unlisted_##symbol() { return shim::DenyUnlisted(#symbol, kNotSupported); }
#include "shim/cublas/unlisted_cublaslt.inc"
#undef NAME

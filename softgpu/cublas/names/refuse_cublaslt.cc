// What is in the vendor's library and isn't implemented here: version 1 of the interface, cublasXt,
// and entry points without documentation. A program that needs only to load finds the name; calling
// it returns CUBLAS_STATUS_NOT_SUPPORTED, whatever its arguments. The definitions are weak: an
// implementation elsewhere in the library takes the name. No vendor header may be included here,
// because it would rename the old names to the new ones.
#define NAME(symbol)                                                                          \
  extern "C" __attribute__((weak, visibility("default"))) int refuse_##symbol() asm(#symbol); \
  int refuse_##symbol() { return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */ }
#include "softgpu/cublas/names/cublaslt.inc"
#undef NAME

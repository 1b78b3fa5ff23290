// What libcublasLt.so.13 exports beside its table: refusals.
#include "shim/cublas/unlisted.h"

#include "shim/cublas/unlisted_cublaslt.inc"
#undef NAME

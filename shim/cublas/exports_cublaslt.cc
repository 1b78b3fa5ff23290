// libcublasLt.so.13's exports: every row of its table under its own name.
#include "shim/blas_calls.h"
#include "shim/cublas/local.h"

#define LANEWAY_FORWARD shim::ForwardCublasLt
#include "shim/export_rows.h"

#include "ipc/calls/cublaslt.inc"
#undef CALL

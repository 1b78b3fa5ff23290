// What libsoftgpu_blas.so offers to libcublas and libcublasLt. Everything else in it, OpenBLAS
// above all, stays hidden, so that a program's own BLAS is never replaced by ours.
#pragma once

#define SOFTGPU_CUBLAS_CORE __attribute__((visibility("default")))

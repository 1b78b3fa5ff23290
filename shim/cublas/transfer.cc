// cublasSetVector, cublasGetMatrix and their kin: pitched copies of the driver.
#include <algorithm>

#include "shim/blas_calls.h"
#include "shim/copy.h"
#include "shim/cublas/local.h"
#include "shim/streams.h"

namespace local {
namespace {

// `rows` pieces of `bytes`, at these distances.
struct Pieces {
  int64_t bytes, rows;
  int64_t from_pitch, to_pitch;
};

cublasStatus_t Move(const Pieces& pieces, const void* from, void* to, CUstream program,
                    bool synchronous) {
  if (pieces.bytes == 0 || pieces.rows == 0) return CUBLAS_STATUS_SUCCESS;
  shim::Context* context = nullptr;
  uint64_t context_value = 0;
  if (shim::BlasContext(&context, &context_value) != CUDA_SUCCESS)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  shim::Stream* stream = nullptr;
  if (shim::Streams::Process().Use(program, *context, context_value, &stream) != CUDA_SUCCESS) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  shim::PitchedCopy copy;
  copy.to = reinterpret_cast<uint64_t>(to);
  copy.from = reinterpret_cast<uint64_t>(from);
  copy.to_pitch = static_cast<size_t>(pieces.to_pitch);
  copy.from_pitch = static_cast<size_t>(pieces.from_pitch);
  copy.width = static_cast<size_t>(pieces.bytes);
  copy.height = static_cast<size_t>(pieces.rows);
  copy.synchronous = synchronous;
  return shim::CopyRows(copy, *stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t Vector(int64_t n, int64_t bytes, const void* x, int64_t incx, void* y, int64_t incy,
                      CUstream stream, bool synchronous) {
  if (n < 0 || bytes <= 0 || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (incx == 1 && incy == 1)
    return Move({n * bytes, 1, n * bytes, n * bytes}, x, y, stream, synchronous);
  return Move({bytes, n, incx * bytes, incy * bytes}, x, y, stream, synchronous);
}

cublasStatus_t Matrix(int64_t rows, int64_t columns, int64_t bytes, const void* a, int64_t lda,
                      void* b, int64_t ldb, CUstream stream, bool synchronous) {
  const int64_t least = std::max<int64_t>(1, rows);
  if (rows < 0 || columns < 0 || bytes <= 0 || lda < least || ldb < least)
    return CUBLAS_STATUS_INVALID_VALUE;
  return Move({rows * bytes, columns, lda * bytes, ldb * bytes}, a, b, stream, synchronous);
}

}  // namespace

// The direction follows from where the addresses lie; each of the four has a form with 64-bit
// sizes.
#define LANEWAY_VECTOR(name, Int)                                                     \
  cublasStatus_t name(Int n, Int bytes, const void* x, Int incx, void* y, Int incy) { \
    return Vector(n, bytes, x, incx, y, incy, nullptr, true);                         \
  }
#define LANEWAY_VECTOR_ASYNC(name, Int)                                             \
  cublasStatus_t name(Int n, Int bytes, const void* x, Int incx, void* y, Int incy, \
                      cudaStream_t s) {                                             \
    return Vector(n, bytes, x, incx, y, incy, s, false);                            \
  }
#define LANEWAY_MATRIX(name, Int)                                                        \
  cublasStatus_t name(Int rows, Int columns, Int bytes, const void* a, Int lda, void* b, \
                      Int ldb) {                                                         \
    return Matrix(rows, columns, bytes, a, lda, b, ldb, nullptr, true);                  \
  }
#define LANEWAY_MATRIX_ASYNC(name, Int)                                                           \
  cublasStatus_t name(Int rows, Int columns, Int bytes, const void* a, Int lda, void* b, Int ldb, \
                      cudaStream_t s) {                                                           \
    return Matrix(rows, columns, bytes, a, lda, b, ldb, s, false);                                \
  }
LANEWAY_VECTOR(cublasSetVector, int)
LANEWAY_VECTOR(cublasSetVector_64, int64_t)
LANEWAY_VECTOR(cublasGetVector, int)
LANEWAY_VECTOR(cublasGetVector_64, int64_t)
LANEWAY_VECTOR_ASYNC(cublasSetVectorAsync, int)
LANEWAY_VECTOR_ASYNC(cublasSetVectorAsync_64, int64_t)
LANEWAY_VECTOR_ASYNC(cublasGetVectorAsync, int)
LANEWAY_VECTOR_ASYNC(cublasGetVectorAsync_64, int64_t)
LANEWAY_MATRIX(cublasSetMatrix, int)
LANEWAY_MATRIX(cublasSetMatrix_64, int64_t)
LANEWAY_MATRIX(cublasGetMatrix, int)
LANEWAY_MATRIX(cublasGetMatrix_64, int64_t)
LANEWAY_MATRIX_ASYNC(cublasSetMatrixAsync, int)
LANEWAY_MATRIX_ASYNC(cublasSetMatrixAsync_64, int64_t)
LANEWAY_MATRIX_ASYNC(cublasGetMatrixAsync, int)
LANEWAY_MATRIX_ASYNC(cublasGetMatrixAsync_64, int64_t)

}  // namespace local

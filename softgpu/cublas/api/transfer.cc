// cublasSetVector, GetVector, SetMatrix, GetMatrix and their asynchronous kin: strided copies
// between host and device, which are the driver's two-dimensional copies.
#include <algorithm>

#include "softgpu/cublas/api/bind.h"

namespace softgpu::cublas {
namespace {

struct Block {
  int64_t row_bytes, rows;  // rows of a copy are columns of a matrix
  int64_t from_pitch, to_pitch;
};

enum class Direction { kToDevice, kToHost };

CUDA_MEMCPY2D Describe(Direction direction, const Block& block, const void* from, void* to) {
  CUDA_MEMCPY2D copy = {};
  copy.WidthInBytes = static_cast<size_t>(block.row_bytes);
  copy.Height = static_cast<size_t>(block.rows);
  copy.srcPitch = static_cast<size_t>(block.from_pitch);
  copy.dstPitch = static_cast<size_t>(block.to_pitch);
  if (direction == Direction::kToDevice) {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
  } else {
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
  }
  return copy;
}

// On `stream`, or waiting for the copy when `stream` is nullptr.
cublasStatus_t Transfer(Direction direction, const Block& block, const void* from, void* to,
                        const cudaStream_t* stream) {
  if (block.row_bytes == 0 || block.rows == 0) return CUBLAS_STATUS_SUCCESS;
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const cublasStatus_t status = driver->EnsureContext();
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const CUDA_MEMCPY2D copy = Describe(direction, block, from, to);
  const CUresult result = stream != nullptr ? driver->cuMemcpy2DAsync_v2(&copy, *stream)
                                            : driver->cuMemcpy2DUnaligned_v2(&copy);
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t Vector(Direction direction, int64_t n, int64_t bytes, const void* x, int64_t incx,
                      void* y, int64_t incy, const cudaStream_t* stream) {
  if (n < 0 || bytes <= 0 || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (incx == 1 && incy == 1) {
    return Transfer(direction, {n * bytes, n > 0 ? 1 : 0, n * bytes, n * bytes}, x, y, stream);
  }
  return Transfer(direction, {bytes, n, incx * bytes, incy * bytes}, x, y, stream);
}

cublasStatus_t Rectangle(Direction direction, int64_t rows, int64_t columns, int64_t bytes,
                         const void* a, int64_t lda, void* b, int64_t ldb,
                         const cudaStream_t* stream) {
  if (rows < 0 || columns < 0 || bytes <= 0 || lda < std::max<int64_t>(1, rows) ||
      ldb < std::max<int64_t>(1, rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return Transfer(direction, {rows * bytes, columns, lda * bytes, ldb * bytes}, a, b, stream);
}

template <Direction kDirection, class Int>
cublasStatus_t CopyVector(Int n, Int bytes, const void* x, Int incx, void* y, Int incy) {
  return Vector(kDirection, n, bytes, x, incx, y, incy, nullptr);
}
template <Direction kDirection, class Int>
cublasStatus_t CopyVectorAsync(Int n, Int bytes, const void* x, Int incx, void* y, Int incy,
                               cudaStream_t stream) {
  return Vector(kDirection, n, bytes, x, incx, y, incy, &stream);
}
template <Direction kDirection, class Int>
cublasStatus_t CopyMatrix(Int rows, Int columns, Int bytes, const void* a, Int lda, void* b,
                          Int ldb) {
  return Rectangle(kDirection, rows, columns, bytes, a, lda, b, ldb, nullptr);
}
template <Direction kDirection, class Int>
cublasStatus_t CopyMatrixAsync(Int rows, Int columns, Int bytes, const void* a, Int lda, void* b,
                               Int ldb, cudaStream_t stream) {
  return Rectangle(kDirection, rows, columns, bytes, a, lda, b, ldb, &stream);
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

#define SOFTGPU_EXPORT_TRANSFER(name, function, direction)             \
  SOFTGPU_EXPORT(cublas##name, (&function<Direction::direction, int>)) \
  SOFTGPU_EXPORT(cublas##name##_64, (&function<Direction::direction, int64_t>))

SOFTGPU_EXPORT_TRANSFER(SetVector, CopyVector, kToDevice)
SOFTGPU_EXPORT_TRANSFER(GetVector, CopyVector, kToHost)
SOFTGPU_EXPORT_TRANSFER(SetVectorAsync, CopyVectorAsync, kToDevice)
SOFTGPU_EXPORT_TRANSFER(GetVectorAsync, CopyVectorAsync, kToHost)
SOFTGPU_EXPORT_TRANSFER(SetMatrix, CopyMatrix, kToDevice)
SOFTGPU_EXPORT_TRANSFER(GetMatrix, CopyMatrix, kToHost)
SOFTGPU_EXPORT_TRANSFER(SetMatrixAsync, CopyMatrixAsync, kToDevice)
SOFTGPU_EXPORT_TRANSFER(GetMatrixAsync, CopyMatrixAsync, kToHost)
#undef SOFTGPU_EXPORT_TRANSFER

// Copies of planes of arrays, and of bytes that run through their rows.
#include <algorithm>

#include "runtime/api.h"
#include "runtime/array.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

// The plane copies of arrays count x and width in bytes already.
cudaMemcpy3DParms Plane(size_t width, size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params = {};
  params.extent = {width, height, 1};
  params.kind = kind;
  return params;
}

cudaError_t ArrayPosition(cudaArray_const_t array, size_t x_bytes, size_t y, cudaPos* position,
                          size_t* element) {
  const cudaError_t error = ElementBytes(array, element);
  if (error != cudaSuccess) return error;
  if (x_bytes % *element != 0) return cudaErrorInvalidValue;
  *position = {x_bytes / *element, y, 0};
  return cudaSuccess;
}

struct Linear {
  void* pointer;
  size_t pitch;
};

// A copy between a plane of an array and linear memory; `to_array` says which way.
cudaError_t PlaneCopy(cudaArray_const_t array, size_t x_bytes, size_t y, const Linear& linear,
                      cudaMemcpy3DParms params, bool to_array, cudaStream_t stream) {
  cudaPos position;
  size_t element = 0;
  const cudaError_t error = ArrayPosition(array, x_bytes, y, &position, &element);
  if (error != cudaSuccess) return error;
  if (params.extent.width % element != 0) return cudaErrorInvalidValue;
  const cudaPitchedPtr pitched = {linear.pointer, linear.pitch, params.extent.width,
                                  params.extent.height};
  params.extent.width /= element;
  (to_array ? params.dstArray : params.srcArray) = const_cast<cudaArray_t>(array);
  (to_array ? params.dstPos : params.srcPos) = position;
  (to_array ? params.srcPtr : params.dstPtr) = pitched;
  return api::cudaMemcpy3DAsync(&params, stream);
}

// Bytes of a row of the array.
cudaError_t RowBytes(cudaArray_const_t array, size_t* bytes) {
  cudaExtent extent = {};
  const cudaError_t error =
      api::cudaArrayGetInfo(nullptr, &extent, nullptr, const_cast<cudaArray_t>(array));
  if (error != cudaSuccess) return error;
  const cudaError_t no_element = ElementBytes(array, bytes);
  *bytes *= extent.width;
  return no_element;
}

// A copy of bytes that go on in the next row where one ends: the rest of a row, whole rows, and
// what remains.
cudaError_t RunningCopy(cudaArray_const_t array, size_t x, size_t y, char* linear, size_t bytes,
                        cudaMemcpyKind kind, bool to_array, cudaStream_t stream) {
  size_t row = 0;
  cudaError_t error = RowBytes(array, &row);
  if (error == cudaSuccess && x >= row) error = cudaErrorInvalidValue;
  while (error == cudaSuccess && bytes != 0) {
    const bool whole = x == 0 && bytes >= row;
    const size_t width = whole ? row : std::min(row - x, bytes), height = whole ? bytes / row : 1;
    error = PlaneCopy(array, x, y, {linear, width}, Plane(width, height, kind), to_array, stream);
    linear += width * height;
    bytes -= width * height;
    x = 0;
    y += height;
  }
  return error;
}

// A place in an array; x in bytes.
struct Spot {
  cudaArray_const_t array;
  size_t x, y;
};

// The driver counts x in elements, so both arrays must have elements of one size, and the copy
// whole elements.
cudaError_t BetweenArrays(const Spot& target, const Spot& source, cudaMemcpy3DParms params,
                          cudaStream_t stream) {
  size_t element = 0, other = 0;
  cudaError_t error = ArrayPosition(source.array, source.x, source.y, &params.srcPos, &element);
  if (error == cudaSuccess)
    error = ArrayPosition(target.array, target.x, target.y, &params.dstPos, &other);
  if (error != cudaSuccess) return error;
  if (element != other || params.extent.width % element != 0) return cudaErrorInvalidValue;
  params.extent.width /= element;
  params.srcArray = const_cast<cudaArray_t>(source.array);
  params.dstArray = const_cast<cudaArray_t>(target.array);
  return api::cudaMemcpy3DAsync(&params, stream);
}

// The rows of the two may have different lengths.
cudaError_t RunningCopy(Spot target, Spot source, size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  size_t target_row = 0, source_row = 0;
  cudaError_t error = RowBytes(target.array, &target_row);
  if (error == cudaSuccess) error = RowBytes(source.array, &source_row);
  if (error == cudaSuccess && (target.x >= target_row || source.x >= source_row))
    error = cudaErrorInvalidValue;
  while (error == cudaSuccess && bytes != 0) {
    const size_t width = std::min({target_row - target.x, source_row - source.x, bytes});
    error = BetweenArrays(target, source, Plane(width, 1, kind), stream);
    bytes -= width;
    target = {target.array, (target.x + width) % target_row,
              target.y + (target.x + width) / target_row};
    source = {source.array, (source.x + width) % source_row,
              source.y + (source.x + width) / source_row};
  }
  return error;
}

// The synchronous calls: the copies above are queued on the legacy stream.
cudaError_t ThenWait(cudaError_t error) {
  return error == cudaSuccess ? Driver().cuStreamSynchronize(cudaStreamLegacy) : error;
}

}  // namespace

namespace api {

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t target, size_t x, size_t y, const void* source,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return PlaneCopy(target, x, y, {const_cast<void*>(source), pitch}, Plane(width, height, kind),
                   true, stream);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* target, size_t pitch, cudaArray_const_t source,
                                       size_t x, size_t y, size_t width, size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  return PlaneCopy(source, x, y, {target, pitch}, Plane(width, height, kind), false, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x, size_t y, const void* source,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpy2DToArrayAsync(target, x, y, source, pitch, width, height, kind,
                                                cudaStreamLegacy));
}

cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t source, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpy2DFromArrayAsync(target, pitch, source, x, y, width, height, kind,
                                                  cudaStreamLegacy));
}

cudaError_t cudaMemcpy2DArrayToArrayAsync(cudaArray_t target, size_t target_x, size_t target_y,
                                          cudaArray_const_t source, size_t source_x,
                                          size_t source_y, size_t width, size_t height,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
  return BetweenArrays({target, target_x, target_y}, {source, source_x, source_y},
                       Plane(width, height, kind), stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t target, size_t target_x, size_t target_y,
                                     cudaArray_const_t source, size_t source_x, size_t source_y,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpy2DArrayToArrayAsync(target, target_x, target_y, source, source_x,
                                                     source_y, width, height, kind,
                                                     cudaStreamLegacy));
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t target, size_t x, size_t y, const void* source,
                                   size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  char* const linear = const_cast<char*>(static_cast<const char*>(source));
  return RunningCopy(target, x, y, linear, bytes, kind, true, stream);
}

cudaError_t cudaMemcpyFromArrayAsync(void* target, cudaArray_const_t source, size_t x, size_t y,
                                     size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return RunningCopy(source, x, y, static_cast<char*>(target), bytes, kind, false, stream);
}

cudaError_t cudaMemcpyArrayToArrayAsync(cudaArray_t target, size_t target_x, size_t target_y,
                                        cudaArray_const_t source, size_t source_x, size_t source_y,
                                        size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return RunningCopy({target, target_x, target_y}, {source, source_x, source_y}, bytes, kind,
                     stream);
}

cudaError_t cudaMemcpyToArray(cudaArray_t target, size_t x, size_t y, const void* source,
                              size_t bytes, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpyToArrayAsync(target, x, y, source, bytes, kind, cudaStreamLegacy));
}

cudaError_t cudaMemcpyFromArray(void* target, cudaArray_const_t source, size_t x, size_t y,
                                size_t bytes, cudaMemcpyKind kind) {
  return ThenWait(
      api::cudaMemcpyFromArrayAsync(target, source, x, y, bytes, kind, cudaStreamLegacy));
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t target, size_t target_x, size_t target_y,
                                   cudaArray_const_t source, size_t source_x, size_t source_y,
                                   size_t bytes, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpyArrayToArrayAsync(target, target_x, target_y, source, source_x,
                                                   source_y, bytes, kind, cudaStreamLegacy));
}

}  // namespace api
}  // namespace runtime

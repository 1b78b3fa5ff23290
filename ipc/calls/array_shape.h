// How large arrays and linear textures are, by their descriptions: what the client checks before it
// sends, and the worker again. Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"
#include "ipc/calls/vendor.h"

namespace ipc {

// Bytes of one channel; 0 for formats that Laneway has no arrays of.
constexpr uint32_t BytesOfFormat(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

// Elements of 1, 2 or 4 channels; 0: there are none of that kind.
constexpr uint32_t ElementBytes(CUarray_format format, uint32_t channels) {
  const bool known = channels == 1 || channels == 2 || channels == 4;
  return known ? BytesOfFormat(format) * channels : 0;
}

struct ArrayShape {
  uint64_t element = 0;  // bytes; 0: no such array
  uint64_t row = 0;      // bytes
  uint64_t rows = 0;
  uint64_t slices = 0;  // planes of a volume, layers or faces
};

constexpr ArrayShape ShapeOf(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  const uint64_t element = ElementBytes(array.Format, array.NumChannels);
  if (element == 0 || array.Width == 0 || array.Width > limits::kArraySideMax ||
      array.Height > limits::kArraySideMax || array.Depth > limits::kArraySlicesMax) {
    return {};
  }
  return {element, array.Width * element, std::max<uint64_t>(array.Height, 1),
          std::max<uint64_t>(array.Depth, 1)};
}

// The memory that an array takes, about as devices lay arrays out: in blocks of 64 bytes by 8 rows.
constexpr uint64_t MemoryOf(const ArrayShape& shape) {
  const auto up = [](uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; };
  const uint64_t rows = shape.rows == 1 ? 1 : up(shape.rows, 8);
  return up(up(shape.row, 64) * rows * shape.slices, limits::kAllocationAlignment);
}

// Each level of a mipmapped array is half as large as the one before. The depth of layers stays.
constexpr CUDA_ARRAY3D_DESCRIPTOR NextLevel(CUDA_ARRAY3D_DESCRIPTOR level) {
  const auto half = [](size_t size) { return size == 0 ? 0 : std::max<size_t>(size / 2, 1); };
  level.Width = half(level.Width);
  level.Height = half(level.Height);
  if ((level.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0)
    level.Depth = half(level.Depth);
  return level;
}

// How many of `levels` there are: the last one that an array can have is a single element.
constexpr unsigned LevelsOf(const CUDA_ARRAY3D_DESCRIPTOR& array, unsigned levels) {
  const bool volume = (array.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  const uint64_t side = std::max({array.Width, array.Height, volume ? array.Depth : size_t{0}});
  unsigned most = 1;
  while (side >> most != 0) ++most;
  return std::clamp(levels, 1u, most);
}

// True when the box lies inside the array: x and width in bytes, the rest in rows and slices.
constexpr bool Contains(const ArrayShape& shape, const ArrayPlace& at, const BoxSize& size) {
  const auto within = [](uint64_t begin, uint64_t length, uint64_t end) {
    return begin <= end && length <= end - begin;
  };
  return shape.element != 0 && at.x % shape.element == 0 && within(at.x, size.width, shape.row) &&
         within(at.y, size.height, shape.rows) && within(at.z, size.depth, shape.slices);
}

// The bytes from the first to the last that a box reaches in linear memory, whose slices are
// `rows_apart` rows apart. False: that overflows, a pitch is too small, or the box is empty.
constexpr bool BoxReach(uint64_t pitch, uint64_t rows_apart, const BoxSize& size, uint64_t* bytes) {
  if (size.width == 0 || size.height == 0 || size.depth == 0) return false;
  if (size.height > 1 && pitch < size.width) return false;
  uint64_t rows = 0, slice = 0, slices = 0, sum = 0;
  return !__builtin_mul_overflow(pitch, size.height - 1, &rows) &&
         !__builtin_mul_overflow(pitch, rows_apart, &slice) &&
         !__builtin_mul_overflow(slice, size.depth - 1, &slices) &&
         !__builtin_add_overflow(rows, slices, &sum) &&
         !__builtin_add_overflow(sum, size.width, bytes);
}

// The bytes of memory that a texture reads. False: the device has no such texture.
constexpr bool LinearReach(const LinearTexels& texels, uint64_t* bytes) {
  const uint64_t element =
      ElementBytes(static_cast<CUarray_format>(texels.format), texels.channels);
  if (element == 0) return false;
  if (texels.pitch == 0) {  // one row, by its bytes
    *bytes = texels.width;
    return texels.width != 0 && texels.width / element <= limits::kLinearTexelsMax;
  }
  if (texels.width > limits::kArraySideMax || texels.height > limits::kArraySideMax) return false;
  return BoxReach(texels.pitch, 0, {texels.width * element, texels.height, 1}, bytes);
}

}  // namespace ipc

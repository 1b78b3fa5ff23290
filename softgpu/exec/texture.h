// Textures and surfaces as kernels see them: texels in memory, and how they are addressed and read.
//
// The driver describes each object once; instructions name it by the 64-bit handle that the program
// was given, which is looked up at each use, because a kernel may hold anything. Thread safety:
// functions without state; descriptions are immutable.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "softgpu/ptx/types.h"

namespace softgpu {

struct Texels {
  std::byte* base = nullptr;
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  uint32_t channels = 1;
  uint32_t width = 1, height = 1, depth = 1;  // texels; depth of a volume, layers or faces
  uint64_t pitch = 0, slice = 0;              // bytes from row to row, from plane to plane

  uint32_t channel_bytes() const;
  uint32_t texel_bytes() const { return channel_bytes() * channels; }
};

// Bytes of one channel; 0 for formats that the device has not.
uint32_t BytesOfFormat(CUarray_format format);

struct Texture {
  Texels texels;
  std::array<CUaddress_mode, 3> address{CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                        CU_TR_ADDRESS_MODE_CLAMP};
  bool linear = false;      // filter
  bool as_integer = false;  // 8- and 16-bit integers as they are, not as fractions of 1
  bool normalized = false;  // coordinates are fractions of the size
  bool srgb = false;
  std::array<float, 4> border{};
};

using TextureGeometry = ptx::Geometry;

// Coordinates of one fetch: `layer` for the layered kinds, then up to three more, as floats or, of
// an unfiltered fetch, as integers.
struct TextureCoordinates {
  bool integer = false;
  uint32_t layer = 0;
  std::array<float, 3> at{};
  std::array<int32_t, 3> index{};
};

// Four channels, each a float, or an integer where the format has one and `as_integer` is set.
// Missing ones read 0, the fourth 1.
std::array<uint32_t, 4> Sample(const Texture& texture, TextureGeometry geometry,
                               const TextureCoordinates& where);

// One component of the four texels that a linear filter would mix, rows counting downwards: below
// left, below right, above right, above left. Of planes alone: 2D, cubes, their layers.
std::array<uint32_t, 4> Gather(const Texture& texture, TextureGeometry geometry,
                               const TextureCoordinates& where, uint32_t component);

// The objects of the process. Thread safety: called from executor threads at once.
class Textures {
 public:
  virtual ~Textures() = default;
  // Copies the description; false: no such object.
  virtual bool FindTexture(uint64_t handle, Texture* texture) const = 0;
  virtual bool FindSurface(uint64_t handle, Texels* surface) const = 0;
};

}  // namespace softgpu

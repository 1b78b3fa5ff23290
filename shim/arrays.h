// Arrays, and the textures and surfaces of arrays and memory: made and ended in the worker, known
// here. Thread safety: all functions.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>

#include "shim/state.h"

namespace shim {

class Arrays {
 public:
  static CUresult Create(const Context& context, uint64_t context_value,
                         const CUDA_ARRAY3D_DESCRIPTOR& descriptor, CUarray* array);
  static CUresult CreateMipmap(const Context& context, uint64_t context_value,
                               const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                               CUmipmappedArray* array);
  // The level as an array, the same one each time. 400: no such mipmapped array; 1: no such level.
  static CUresult Level(uint64_t mipmap, unsigned level, CUarray* array);
  // 400: no such array, or a level of another.
  static CUresult End(uint64_t array);
  static CUresult EndMipmap(uint64_t array);

  // REQUIRES: the descriptions that the program may leave out have their default values.
  static CUresult CreateTexture(const Context& context, Textures::Facts facts,
                                CUtexObject* texture);
  static CUresult CreateSurface(const Context& context, const Textures::Facts& facts,
                                CUsurfObject* surface);
  // What Textures::Remove gave, or OfContext listed.
  static CUresult EndTexture(const Textures::Entry& texture);
};

}  // namespace shim

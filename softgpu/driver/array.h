// Arrays, and the texture and surface objects over arrays and linear memory.
//
// An array is rows of texels in device memory, pitched as any program could pitch them: hardware
// hides its layout, so nothing depends on ours. Thread safety: immutable once made.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/exec/texture.h"

namespace softgpu {

struct Allocation;
class Context;

class Array {
 public:
  // 1 for sizes or a format that the device has not, 2 for want of memory.
  static CUresult Create(const std::shared_ptr<Context>& context,
                         const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::shared_ptr<Array>* array);
  ~Array();

  CUarray handle() { return reinterpret_cast<CUarray>(this); }
  const CUDA_ARRAY3D_DESCRIPTOR& descriptor() const { return descriptor_; }
  const Texels& texels() const { return texels_; }
  uint64_t address() const;
  uint64_t bytes() const { return texels_.slice * texels_.depth; }
  uint64_t context_id() const { return context_id_; }
  // One of a mipmapped array, with which it ends.
  bool is_level() const { return is_level_; }

 private:
  CUDA_ARRAY3D_DESCRIPTOR descriptor_ = {};
  Texels texels_;
  uint64_t context_id_ = 0;
  bool is_level_ = false;
  std::shared_ptr<Allocation> memory_;
  friend class MipmappedArray;
};

// Each level half as large as the one before.
class MipmappedArray {
 public:
  static CUresult Create(const std::shared_ptr<Context>& context,
                         const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                         std::shared_ptr<MipmappedArray>* array);
  CUmipmappedArray handle() { return reinterpret_cast<CUmipmappedArray>(this); }
  const std::vector<std::shared_ptr<Array>>& levels() const { return levels_; }

 private:
  std::vector<std::shared_ptr<Array>> levels_;
};

struct TextureObject {
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC description = {};
  CUDA_RESOURCE_VIEW_DESC view = {};
  bool has_view = false;
  std::shared_ptr<Array> array;  // null: linear memory
  Texture texture;
};

struct SurfaceObject {
  CUDA_RESOURCE_DESC resource = {};
  std::shared_ptr<Array> array;
};

// The process's texture and surface objects, as kernels look them up.
const Textures& DriverTextures();

}  // namespace softgpu

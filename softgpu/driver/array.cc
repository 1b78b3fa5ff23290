#include "softgpu/driver/array.h"

#include <algorithm>
#include <utility>

#include "ipc/calls/limits.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu {
namespace {

constexpr uint64_t kRowAlignment = 32;
constexpr uint64_t kSideMax = ipc::limits::kArraySideMax;
constexpr uint64_t kDepthMax = ipc::limits::kArraySlicesMax;
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult Check(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (BytesOfFormat(d.Format) == 0) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED,
                "arrays have 8-, 16- and 32-bit integers, halves or "
                "floats");
  }
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4)
    return Fail(CUDA_ERROR_INVALID_VALUE, "an array has 1, 2 or 4 channels");
  if ((d.Flags & ~kKnownFlags) != 0)
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "sparse and deferred arrays and depth are not supported");
  if (d.Width == 0 || d.Width > kSideMax || d.Height > kSideMax || d.Depth > kDepthMax)
    return Fail(CUDA_ERROR_INVALID_VALUE, "the device has no arrays of this size");
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const bool cube = (d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  if (layered && d.Depth == 0) return Fail(CUDA_ERROR_INVALID_VALUE, "an array without layers");
  if (cube &&
      (d.Width != d.Height || d.Depth % 6 != 0 || d.Depth == 0 || (!layered && d.Depth != 6))) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "a cube has six square faces");
  }
  if (!layered && d.Depth != 0 && d.Height == 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "a volume has a height");
  return CUDA_SUCCESS;
}

class ProcessTextures final : public Textures {
 public:
  bool FindTexture(uint64_t handle, Texture* texture) const override {
    const std::shared_ptr<TextureObject> object =
        Driver::Get().textures.Find(reinterpret_cast<const void*>(handle));
    if (object != nullptr) *texture = object->texture;
    return object != nullptr;
  }
  bool FindSurface(uint64_t handle, Texels* surface) const override {
    const std::shared_ptr<SurfaceObject> object =
        Driver::Get().surfaces.Find(reinterpret_cast<const void*>(handle));
    if (object != nullptr) *surface = object->array->texels();
    return object != nullptr;
  }
};

}  // namespace

CUresult Array::Create(const std::shared_ptr<Context>& context,
                       const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::shared_ptr<Array>* out) {
  if (const CUresult result = Check(descriptor); result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Array> array = std::make_shared<Array>();
  Texels& texels = array->texels_;
  texels.format = descriptor.Format;
  texels.channels = descriptor.NumChannels;
  texels.width = static_cast<uint32_t>(descriptor.Width);
  texels.height = static_cast<uint32_t>(std::max<size_t>(descriptor.Height, 1));
  texels.depth = static_cast<uint32_t>(std::max<size_t>(descriptor.Depth, 1));
  const uint64_t row = uint64_t{texels.width} * texels.texel_bytes();
  texels.pitch = (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  texels.slice = texels.pitch * texels.height;
  array->descriptor_ = descriptor;
  array->context_id_ = context->id();
  array->memory_ = AllocateDeviceMemory(&context->device(), Allocation::Kind::kArray,
                                        array->bytes(), context->id());
  if (array->memory_ == nullptr) return Fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for the array");
  texels.base = reinterpret_cast<std::byte*>(array->memory_->base);
  *out = array;
  return CUDA_SUCCESS;
}

Array::~Array() {
  if (memory_ == nullptr) return;
  Driver::Get().memory_map().Remove(
      memory_->base, [this](const Allocation& allocation) { return &allocation == memory_.get(); });
}

uint64_t Array::address() const { return memory_->base; }

CUresult MipmappedArray::Create(const std::shared_ptr<Context>& context,
                                const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                                std::shared_ptr<MipmappedArray>* out) {
  const std::shared_ptr<MipmappedArray> array = std::make_shared<MipmappedArray>();
  const bool volume = (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  CUDA_ARRAY3D_DESCRIPTOR level = descriptor;
  const auto half = [](size_t size) { return size == 0 ? 0 : std::max<size_t>(size / 2, 1); };
  // More levels than halvings are cut off, as the manual says.
  for (unsigned i = 0; i < std::max(levels, 1u); ++i) {
    std::shared_ptr<Array> made;
    const CUresult result = Array::Create(context, level, &made);
    if (result != CUDA_SUCCESS) return result;
    made->is_level_ = true;
    array->levels_.push_back(std::move(made));
    if (level.Width <= 1 && level.Height <= 1 && (!volume || level.Depth <= 1)) break;
    level.Width = half(level.Width);
    level.Height = half(level.Height);
    if (volume) level.Depth = half(level.Depth);
  }
  *out = array;
  return CUDA_SUCCESS;
}

const Textures& DriverTextures() {
  static const ProcessTextures* const textures = new ProcessTextures;
  return *textures;
}

}  // namespace softgpu

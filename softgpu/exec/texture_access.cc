// Textures and surfaces, a lane at a time. Neighbouring lanes nearly always use one object, so the
// last one found is kept for the length of an instruction. Thread safety: a warp's own thread.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "softgpu/exec/handlers.h"
#include "softgpu/exec/texture.h"

namespace softgpu::exec {
namespace {

using ptx::Geometry;

const TexturePlan& PlanOf(const Inst* ip, const Warp* w) {
  return w->frame->code->textures[ip->aux];
}

const Textures* ObjectsOf(const Warp* w) { return w->block->state->launch->objects.textures; }

// Finds objects by handle; the same one again costs nothing.
template <class Object, bool (Textures::*kFind)(uint64_t, Object*) const>
class Finder {
 public:
  explicit Finder(const Warp* w) : objects_(ObjectsOf(w)) {}
  const Object* Find(uint64_t handle) {
    if (found_ && handle == handle_) return &object_;
    found_ = objects_ != nullptr && (objects_->*kFind)(handle, &object_);
    handle_ = handle;
    return found_ ? &object_ : nullptr;
  }

 private:
  const Textures* const objects_;
  uint64_t handle_ = 0;
  bool found_ = false;
  Object object_;
};

using TextureFinder = Finder<Texture, &Textures::FindTexture>;
using SurfaceFinder = Finder<Texels, &Textures::FindSurface>;

bool IsLayered(Geometry geometry) {
  return geometry == Geometry::k1DLayered || geometry == Geometry::k2DLayered ||
         geometry == Geometry::kCubeLayered;
}

const Inst* NoObject(const Inst* ip, Warp* w, uint32_t lane, const char* what, uint64_t handle) {
  char text[80];
  std::snprintf(text, sizeof text, "0x%llx is no %s object",
                static_cast<unsigned long long>(handle), what);
  return RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_LAUNCH_FAILED, text);
}

void Put(Warp* w, uint32_t offset, uint32_t bytes, uint32_t lane, uint64_t value) {
  std::memcpy(w->regs + offset + size_t{lane} * bytes, &value, bytes);
}

uint64_t Take(const Warp* w, uint32_t offset, uint32_t bytes, uint32_t lane) {
  uint64_t value = 0;
  std::memcpy(&value, w->regs + offset + size_t{lane} * bytes, bytes);
  return value;
}

// Column (in bytes), row and plane of a surface's texel.
struct SurfacePlace {
  int64_t at[3] = {};
};

SurfacePlace PlaceOf(const TexturePlan& plan, Warp* w, uint32_t lane) {
  const auto coordinate = [&](int k) { return Reg<int32_t>(w, plan.coordinates[k])[lane]; };
  SurfacePlace place;
  const bool layered = IsLayered(plan.geometry);
  const int first = layered ? 1 : 0;
  place.at[0] = coordinate(first);
  if (plan.geometry != Geometry::k1D && plan.geometry != Geometry::k1DLayered)
    place.at[1] = coordinate(first + 1);
  if (plan.geometry == Geometry::k3D) place.at[2] = coordinate(2);
  if (layered) place.at[2] = coordinate(0);
  return place;
}

// The texel's memory; null: outside. Clamped places are inside.
std::byte* Resolve(const Texels& texels, const TexturePlan& plan, SurfacePlace place) {
  const int64_t bytes = int64_t{plan.bytes} * plan.vector;
  const int64_t ends[3] = {int64_t{texels.width} * texels.texel_bytes() - bytes,
                           int64_t{texels.height} - 1, int64_t{texels.depth} - 1};
  for (int k = 0; k < 3; ++k) {
    if (place.at[k] >= 0 && place.at[k] <= ends[k]) continue;
    if ((plan.flags & ptx::kOutsideClamps) == 0 || ends[k] < 0) return nullptr;
    place.at[k] = std::clamp<int64_t>(place.at[k], 0, ends[k]);
  }
  return texels.base + place.at[2] * static_cast<int64_t>(texels.slice) +
         place.at[1] * static_cast<int64_t>(texels.pitch) + place.at[0];
}

// Loads or stores every running lane's texel.
template <bool kStores>
const Inst* Access(const Inst* ip, Warp* w) {
  const TexturePlan& plan = PlanOf(ip, w);
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  SurfaceFinder finder(w);
  w->current = ip;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t handle = Reg<uint64_t>(w, plan.object)[lane];
    const Texels* const surface = finder.Find(handle);
    if (surface == nullptr) return NoObject(ip, w, lane, "surface", handle);
    std::byte* const at = Resolve(*surface, plan, PlaceOf(plan, w, lane));
    if (at == nullptr && (plan.flags & ptx::kOutsideIsZero) == 0) {
      return RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_LAUNCH_FAILED,
                        "access beyond a surface");
    }
    for (uint32_t k = 0; k < plan.vector; ++k) {
      uint64_t value = kStores ? Take(w, registers[k], plan.register_bytes[k], lane) : 0;
      if (at != nullptr && kStores) std::memcpy(at + k * plan.bytes, &value, plan.bytes);
      if (at != nullptr && !kStores) std::memcpy(&value, at + k * plan.bytes, plan.bytes);
      if (!kStores) Put(w, registers[k], plan.register_bytes[k], lane, value);
    }
  }
  return ip + 1;
}

uint32_t SizeOf(const Texels& texels, uint64_t query) {
  switch (static_cast<ptx::TextureQuery>(query)) {
    case ptx::TextureQuery::kWidth:
      return texels.width;
    case ptx::TextureQuery::kHeight:
      return texels.height;
    default:
      return texels.depth;
  }
}

}  // namespace

const Inst* TextureFetch(const Inst* ip, Warp* w) {
  const TexturePlan& plan = PlanOf(ip, w);
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  TextureFinder finder(w);
  w->current = ip;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t handle = Reg<uint64_t>(w, plan.object)[lane];
    const Texture* const texture = finder.Find(handle);
    if (texture == nullptr) return NoObject(ip, w, lane, "texture", handle);
    TextureCoordinates where;
    where.integer = plan.integer;
    uint32_t k = 0;
    if (IsLayered(plan.geometry)) where.layer = Reg<uint32_t>(w, plan.coordinates[k++])[lane];
    for (uint32_t n = 0; n < 3 && k < 4; ++n, ++k) {
      where.at[n] = Reg<float>(w, plan.coordinates[k])[lane];
      where.index[n] = Reg<int32_t>(w, plan.coordinates[k])[lane];
    }
    const std::array<uint32_t, 4> values =
        plan.gathers < 0
            ? Sample(*texture, plan.geometry, where)
            : Gather(*texture, plan.geometry, where, static_cast<uint32_t>(plan.gathers));
    for (uint32_t c = 0; c < 4; ++c) Put(w, registers[c], plan.register_bytes[c], lane, values[c]);
  }
  return ip + 1;
}

const Inst* SurfaceLoad(const Inst* ip, Warp* w) { return Access<false>(ip, w); }
const Inst* SurfaceStore(const Inst* ip, Warp* w) { return Access<true>(ip, w); }

const Inst* TextureSize(const Inst* ip, Warp* w) {
  TextureFinder finder(w);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t handle = Reg<uint64_t>(w, ip->a)[lane];
    const Texture* const texture = finder.Find(handle);
    if (texture == nullptr) return NoObject(ip, w, lane, "texture", handle);
    Reg<uint32_t>(w, ip->d)[lane] = SizeOf(texture->texels, ip->imm);
  }
  return ip + 1;
}

const Inst* SurfaceSize(const Inst* ip, Warp* w) {
  SurfaceFinder finder(w);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t handle = Reg<uint64_t>(w, ip->a)[lane];
    const Texels* const surface = finder.Find(handle);
    if (surface == nullptr) return NoObject(ip, w, lane, "surface", handle);
    Reg<uint32_t>(w, ip->d)[lane] = SizeOf(*surface, ip->imm);
  }
  return ip + 1;
}

}  // namespace softgpu::exec

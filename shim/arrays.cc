#include "shim/arrays.h"

#include <map>
#include <utility>

#include "ipc/calls/array_shape.h"
#include "shim/memory.h"
#include "shim/send.h"

namespace shim {
namespace {

template <class Handle>
Handle HandleAs(uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

uint64_t HandleBits(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

ipc::TextureView WireViewOf(const Textures::Facts& facts) {
  ipc::TextureView view;
  if (!facts.view.has_value()) return view;
  view.view = *facts.view;
  view.present = 1;
  return view;
}

// False: the device has no such texture, or the program has no such memory.
bool WireTexelsOf(const CUDA_RESOURCE_DESC& resource, CUdeviceptr* memory,
                  ipc::LinearTexels* texels) {
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    const auto& linear = resource.res.linear;
    *memory = linear.devPtr;
    *texels = {static_cast<uint32_t>(linear.format), linear.numChannels, linear.sizeInBytes, 0, 0};
  } else {
    const auto& rows = resource.res.pitch2D;
    *memory = rows.devPtr;
    *texels = {static_cast<uint32_t>(rows.format), rows.numChannels, rows.width, rows.height,
               rows.pitchInBytes};
    if (rows.pitchInBytes == 0) return false;
  }
  uint64_t bytes = 0;
  return ipc::LinearReach(*texels, &bytes) && Memory::PlaceOf(*memory) != Memory::Place::kHost &&
         Memory::IsLive(*memory, bytes);
}

}  // namespace

// --- arrays --------------------------------------------------------------------------------------

CUresult Arrays::Create(const Context& context, uint64_t context_value,
                        const CUDA_ARRAY3D_DESCRIPTOR& descriptor, CUarray* array) {
  State& state = State::Process();
  uint64_t value = 0;
  Array* const made = state.arrays.Create(&value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->descriptor = descriptor;
  made->context = context_value;
  made->wire = context.wire;
  const GivenName name(value);
  const CUresult result = Call<ipc::Op::ArrayCreate>(context.wire, array, &descriptor);
  if (result != CUDA_SUCCESS) state.arrays.Destroy(value);
  return result;
}

CUresult Arrays::CreateMipmap(const Context& context, uint64_t context_value,
                              const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                              CUmipmappedArray* array) {
  State& state = State::Process();
  uint64_t value = 0;
  // The worker's driver cuts surplus levels off; the client counts them by the same rule.
  MipmappedArray* const made = state.mipmaps.Create(&value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->descriptor = descriptor;
  made->levels = ipc::LevelsOf(descriptor, levels);
  made->context = context_value;
  made->wire = context.wire;
  const GivenName name(value);
  const CUresult result = Call<ipc::Op::MipmapCreate>(context.wire, array, &descriptor, levels);
  if (result != CUDA_SUCCESS) state.mipmaps.Destroy(value);
  return result;
}

CUresult Arrays::Level(uint64_t mipmap, unsigned level, CUarray* array) {
  State& state = State::Process();
  MipmappedArray* const of = state.mipmaps.Find(mipmap);
  if (of == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= of->levels) return CUDA_ERROR_INVALID_VALUE;
  const base::MutexLock lock(&of->mutex);
  if (const auto known = of->arrays.find(level); known != of->arrays.end()) {
    *array = HandleAs<CUarray>(known->second);
    return CUDA_SUCCESS;
  }
  uint64_t value = 0;
  Array* const made = state.arrays.Create(&value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->descriptor = of->descriptor;
  for (unsigned i = 0; i < level; ++i) made->descriptor = ipc::NextLevel(made->descriptor);
  made->context = of->context;
  made->wire = of->wire;
  made->mipmap = mipmap;
  const GivenName name(value);
  const CUresult result =
      Call<ipc::Op::MipmapLevel>(of->wire, array, HandleAs<CUmipmappedArray>(mipmap), level);
  if (result == CUDA_SUCCESS) {
    of->arrays[level] = value;
  } else {
    state.arrays.Destroy(value);
  }
  return result;
}

CUresult Arrays::End(uint64_t array) {
  const Array* const found = State::Process().arrays.Find(array);
  if (found == nullptr || found->mipmap != 0) return CUDA_ERROR_INVALID_HANDLE;
  return Post<ipc::Op::ArrayDestroy>(found->wire, HandleAs<CUarray>(array));
}

// The names of the levels are free again once the worker is told.
CUresult Arrays::EndMipmap(uint64_t array) {
  State& state = State::Process();
  MipmappedArray* const found = state.mipmaps.Find(array);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::map<unsigned, uint64_t> levels;
  {
    const base::MutexLock lock(&found->mutex);
    levels = std::move(found->arrays);
    found->arrays.clear();
  }
  const CUresult result =
      Post<ipc::Op::MipmapDestroy>(found->wire, HandleAs<CUmipmappedArray>(array));
  for (const auto& [level, value] : levels) state.arrays.Destroy(value);
  return result;
}

// --- textures and surfaces -----------------------------------------------------------------------

CUresult Arrays::CreateTexture(const Context& context, Textures::Facts facts,
                               CUtexObject* texture) {
  const CUDA_RESOURCE_DESC& resource = facts.resource;
  const ipc::TextureView view = WireViewOf(facts);
  facts.wire = context.wire;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      if (State::Process().arrays.Find(HandleBits(resource.res.array.hArray)) == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
      result = Call<ipc::Op::TextureOfArray>(context.wire, texture, resource.res.array.hArray,
                                             &facts.description, &view);
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      if (State::Process().mipmaps.Find(HandleBits(resource.res.mipmap.hMipmappedArray)) == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
      result = Call<ipc::Op::TextureOfMipmap>(
          context.wire, texture, resource.res.mipmap.hMipmappedArray, &facts.description, &view);
      break;
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D: {
      CUdeviceptr memory = 0;
      ipc::LinearTexels texels;
      if (!WireTexelsOf(resource, &memory, &texels)) return CUDA_ERROR_INVALID_VALUE;
      result = Call<ipc::Op::TextureOfMemory>(context.wire, texture, memory, &texels,
                                              &facts.description, &view);
      break;
    }
  }
  if (result == CUDA_SUCCESS)
    State::Process().textures.Add(Textures::Kind::kTexture, *texture, facts);
  return result;
}

CUresult Arrays::CreateSurface(const Context& context, const Textures::Facts& facts,
                               CUsurfObject* surface) {
  const CUarray array = facts.resource.res.array.hArray;
  const Array* const found = State::Process().arrays.Find(HandleBits(array));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((found->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Call<ipc::Op::SurfaceOfArray>(context.wire, surface, array);
  if (result != CUDA_SUCCESS) return result;
  Textures::Facts known = facts;
  known.wire = context.wire;
  State::Process().textures.Add(Textures::Kind::kSurface, *surface, known);
  return CUDA_SUCCESS;
}

CUresult Arrays::EndTexture(const Textures::Entry& texture) {
  State::Process().textures.Remove(texture.kind, texture.number);
  return texture.kind == Textures::Kind::kTexture
             ? Post<ipc::Op::TextureDestroy>(texture.wire, texture.number)
             : Post<ipc::Op::SurfaceDestroy>(texture.wire, texture.number);
}

}  // namespace shim

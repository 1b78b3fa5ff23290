// Texture and surface objects.
#include "shim/arrays.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

using shim::Arrays;
using shim::Context;
using shim::State;
using shim::Textures;

using TextureKind = Textures::Kind;

std::optional<Textures::Facts> Find(TextureKind kind, unsigned long long number) {
  return State::Process().textures.Find(kind, number);
}

CUresult Destroy(TextureKind kind, unsigned long long number) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const std::optional<Textures::Entry> ended = State::Process().textures.Remove(kind, number);
  return ended.has_value() ? Arrays::EndTexture(*ended) : CUDA_ERROR_INVALID_VALUE;
}

CUresult Resource(TextureKind kind, unsigned long long number, CUDA_RESOURCE_DESC* resource) {
  const std::optional<Textures::Facts> facts = Find(kind, number);
  if (!facts.has_value() || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resource = facts->resource;
  return CUDA_SUCCESS;
}

}  // namespace

// The device says it of itself; every device that Laneway serves has the same.
CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format, unsigned,
                                            CUdevice device) {
  int ordinal = 0;
  if (elements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = OrdinalOf(device, &ordinal);
  if (result == CUDA_SUCCESS) *elements = ipc::limits::kLinearTexelsMax;
  return result;
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  Context* context = nullptr;
  Textures::Facts facts;
  if (const CUresult result = State::Process().Current(&context, &facts.context);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (texture == nullptr || resource == nullptr || description == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  facts.resource = *resource;
  facts.description = *description;
  if (view != nullptr) facts.view = *view;
  return Arrays::CreateTexture(*context, facts, texture);
}

CUresult cuTexObjectDestroy(CUtexObject texture) { return Destroy(TextureKind::kTexture, texture); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject texture) {
  return Resource(TextureKind::kTexture, texture, resource);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject texture) {
  const std::optional<Textures::Facts> facts = Find(TextureKind::kTexture, texture);
  if (!facts.has_value() || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *description = facts->description;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject texture) {
  const std::optional<Textures::Facts> facts = Find(TextureKind::kTexture, texture);
  if (!facts.has_value() || view == nullptr || !facts->view.has_value())
    return CUDA_ERROR_INVALID_VALUE;
  *view = *facts->view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  Context* context = nullptr;
  Textures::Facts facts;
  if (const CUresult result = State::Process().Current(&context, &facts.context);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (surface == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  facts.resource = *resource;
  return Arrays::CreateSurface(*context, facts, surface);
}

CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  return Destroy(TextureKind::kSurface, surface);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject surface) {
  return Resource(TextureKind::kSurface, surface, resource);
}

}  // namespace local

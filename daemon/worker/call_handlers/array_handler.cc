#include "daemon/worker/call_handlers/array_handler.h"

#include <utility>

#include "daemon/worker/reaper.h"

namespace worker {
namespace {

// The other flags are those of sparse arrays and of deferred mapping. Memory of such arrays comes
// and goes behind the driver's back, or the program maps it itself, so no count of the worker
// holds.
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult CheckDescriptor(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  if (ipc::BytesOfFormat(array.Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (ipc::ElementBytes(array.Format, array.NumChannels) == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((array.Flags & ~kKnownFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return ipc::ShapeOf(array).element != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_MEMCPY3D BoxOfSize(const ipc::BoxSize& size) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = size.width;
  copy.Height = size.height;
  copy.Depth = size.depth;
  return copy;
}

void SetTarget(CUarray array, const ipc::ArrayPlace& at, CUDA_MEMCPY3D* copy) {
  copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->dstArray = array;
  copy->dstXInBytes = at.x;
  copy->dstY = at.y;
  copy->dstZ = at.z;
}

void SetSource(CUarray array, const ipc::ArrayPlace& at, CUDA_MEMCPY3D* copy) {
  copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->srcArray = array;
  copy->srcXInBytes = at.x;
  copy->srcY = at.y;
  copy->srcZ = at.z;
}

// Made here, not taken from the client: a resource's unused words may be anything.
CUDA_RESOURCE_DESC ResourceOf(CUdeviceptr memory, const ipc::LinearTexels& texels) {
  CUDA_RESOURCE_DESC resource{};
  if (texels.pitch == 0) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = static_cast<CUarray_format>(texels.format);
    resource.res.linear.numChannels = texels.channels;
    resource.res.linear.sizeInBytes = texels.width;
    return resource;
  }
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.format = static_cast<CUarray_format>(texels.format);
  resource.res.pitch2D.numChannels = texels.channels;
  resource.res.pitch2D.width = texels.width;
  resource.res.pitch2D.height = texels.height;
  resource.res.pitch2D.pitchInBytes = texels.pitch;
  return resource;
}

}  // namespace

ArrayHandler::ArrayHandler(const Surroundings& around)
    : around_(around), driver_(*around.held->environment.driver), held_(*around.held) {}

// --- memory --------------------------------------------------------------------------------------

// Other arrays may end while this one waits for room; what they leave is counted for it.
CUresult ArrayHandler::Make(uint64_t bytes, const std::function<CUresult()>& make) {
  held_.frees.Poll();
  const int device = around_.call->device;
  const uint64_t growth = held_.arrays.Shortfall(device, bytes);
  const auto map = [&] {
    if (!held_.arrays.Add(device, bytes, growth)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult made = make();
    if (made != CUDA_SUCCESS) held_.arrays.Undo(device, bytes, growth);
    return made;
  };
  makes_ = true;
  const CUresult result = growth == 0 ? map() : around_.memory->MapWithRoom(growth, map);
  makes_ = false;
  Trim(device);
  return result;
}

void ArrayHandler::Added(Owner owner, Memory memory) {
  memories_.emplace(owner, std::move(memory));
  Publish();
}

// Linear memory has no owner: the program frees it as it likes, as under any pointer.
void ArrayHandler::Use(Owner owner) {
  if (owner != nullptr) ++memories_.at(owner).uses;
}

void ArrayHandler::Unuse(Owner owner) {
  if (owner == nullptr) return;
  const auto found = memories_.find(owner);
  if (found == memories_.end() || --found->second.uses != 0) return;
  const Memory memory = std::move(found->second);
  memories_.erase(found);
  absl::erase_if(arrays_, [owner](const auto& entry) { return entry.second.owner == owner; });
  Later(held_.environment, memory.destroy);
  held_.arrays.Remove(memory.device, memory.bytes);
  Publish();
  if (!makes_) Trim(memory.device);
}

void ArrayHandler::Trim(int device) {
  if (const uint64_t less = held_.arrays.Trim(device); less != 0)
    around_.memory->GiveMemoryBack(less);
}

// Without an event to wait for, at once: the driver still waits for what uses the memory.
void ArrayHandler::ReleaseAfterWork(Owner owner) {
  held_.frees.Poll();
  const CUresult result = held_.frees.Free(held_.streams.All(), [this, owner] { Unuse(owner); });
  if (result != CUDA_SUCCESS) Unuse(owner);
}

// lanewayd reads the bit, and moves no session with arrays. A client that clears the bit loses its
// own arrays.
void ArrayHandler::Publish() {
  const bool any = !memories_.empty() || !textures_.empty() || !surfaces_.empty();
  std::atomic<uint32_t>& obstacles = around_.file->page()->obstacles;
  if (any) {
    obstacles.fetch_or(ipc::kArrays);
  } else {
    obstacles.fetch_and(~uint32_t{ipc::kArrays});
  }
  around_.file->page()->counts.array_bytes.store(held_.arrays.bytes(), std::memory_order_relaxed);
}

// In this order: what has an array goes before the array. What still waits for the device in the
// list of deferred frees is forgotten there by the caller.
void ArrayHandler::Destroy() {
  for (const auto& [number, object] : std::exchange(textures_, {})) {
    driver_.cuTexObjectDestroy(number);
    Unuse(object.owner);
  }
  for (const auto& [number, object] : std::exchange(surfaces_, {})) {
    driver_.cuSurfObjectDestroy(number);
    Unuse(object.owner);
  }
  while (!memories_.empty()) Unuse(memories_.begin()->first);
  mipmaps_.clear();
  around_.handles->Drain(ipc::HandleKind::kArray, [](void*) {});
  around_.handles->Drain(ipc::HandleKind::kMipmappedArray, [](void*) {});
  Publish();
}

// --- arrays --------------------------------------------------------------------------------------

CUresult ArrayHandler::ArrayCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (const CUresult result = CheckDescriptor(*descriptor); result != CUDA_SUCCESS) return result;
  const ipc::ArrayShape shape = ipc::ShapeOf(*descriptor);
  const uint64_t bytes = ipc::MemoryOf(shape);
  const CUresult result =
      Make(bytes, [&] { return driver_.cuArray3DCreate_v2(array, descriptor); });
  if (result != CUDA_SUCCESS) return result;
  arrays_[*array] = {shape, *array};
  Added(*array, {around_.call->device, bytes,
                 [&driver = driver_, made = *array] { driver.cuArrayDestroy(made); }});
  return CUDA_SUCCESS;
}

// A level has no end of its own.
CUresult ArrayHandler::ArrayDestroy(CUarray array) {
  const auto found = arrays_.find(array);
  if (found == arrays_.end() || found->second.owner != array) return CUDA_ERROR_INVALID_HANDLE;
  ReleaseAfterWork(array);
  return CUDA_SUCCESS;
}

CUresult ArrayHandler::MipmapCreate(CUmipmappedArray* array,
                                    const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned levels) {
  if (const CUresult result = CheckDescriptor(*descriptor); result != CUDA_SUCCESS) return result;
  uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR level = *descriptor;
  for (unsigned i = ipc::LevelsOf(*descriptor, levels); i > 0; --i, level = ipc::NextLevel(level))
    bytes += ipc::MemoryOf(ipc::ShapeOf(level));
  const CUresult result =
      Make(bytes, [&] { return driver_.cuMipmappedArrayCreate(array, descriptor, levels); });
  if (result != CUDA_SUCCESS) return result;
  mipmaps_[*array] = *descriptor;
  Added(*array, {around_.call->device, bytes,
                 [&driver = driver_, made = *array] { driver.cuMipmappedArrayDestroy(made); }});
  return CUDA_SUCCESS;
}

// The driver says which levels there are. Their shapes follow from the first one's.
CUresult ArrayHandler::MipmapLevel(CUarray* array, CUmipmappedArray of, unsigned level) {
  const auto found = mipmaps_.find(of);
  if (found == mipmaps_.end()) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = driver_.cuMipmappedArrayGetLevel(array, of, level);
  if (result != CUDA_SUCCESS) return result;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = found->second;
  for (unsigned i = 0; i < level; ++i) descriptor = ipc::NextLevel(descriptor);
  arrays_[*array] = {ipc::ShapeOf(descriptor), of};
  return CUDA_SUCCESS;
}

// The names of its levels end with it.
CUresult ArrayHandler::MipmapDestroy(CUmipmappedArray array) {
  if (mipmaps_.erase(array) == 0) return CUDA_ERROR_INVALID_HANDLE;
  around_.handles->ReleaseIf(ipc::HandleKind::kArray, [&](void* handle) {
    const auto found = arrays_.find(static_cast<CUarray>(handle));
    return found != arrays_.end() && found->second.owner == array;
  });
  ReleaseAfterWork(array);
  return CUDA_SUCCESS;
}

// --- textures and surfaces -----------------------------------------------------------------------

CUresult ArrayHandler::MakeTexture(CUtexObject* texture, Owner owner,
                                   const CUDA_RESOURCE_DESC& resource,
                                   const CUDA_TEXTURE_DESC& description,
                                   const ipc::TextureView& view) {
  held_.frees.Poll();
  if (textures_.size() >= ipc::limits::kTexturesMax) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver_.cuTexObjectCreate(texture, &resource, &description,
                                                    view.present != 0 ? &view.view : nullptr);
  if (result != CUDA_SUCCESS) return result;
  textures_[*texture] = {owner};
  Use(owner);
  Publish();
  return CUDA_SUCCESS;
}

CUresult ArrayHandler::TextureOfArray(CUtexObject* texture, CUarray array,
                                      const CUDA_TEXTURE_DESC* description,
                                      const ipc::TextureView* view) {
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return CUDA_ERROR_INVALID_HANDLE;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return MakeTexture(texture, found->second.owner, resource, *description, *view);
}

CUresult ArrayHandler::TextureOfMipmap(CUtexObject* texture, CUmipmappedArray array,
                                       const CUDA_TEXTURE_DESC* description,
                                       const ipc::TextureView* view) {
  if (!mipmaps_.contains(array)) return CUDA_ERROR_INVALID_HANDLE;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = array;
  return MakeTexture(texture, array, resource, *description, *view);
}

CUresult ArrayHandler::TextureOfMemory(CUtexObject* texture, CUdeviceptr memory,
                                       const ipc::LinearTexels* texels,
                                       const CUDA_TEXTURE_DESC* description,
                                       const ipc::TextureView* view) {
  uint64_t bytes = 0;
  if (!ipc::LinearReach(*texels, &bytes) || !around_.door->Accepts(memory, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return MakeTexture(texture, nullptr, ResourceOf(memory, *texels), *description, *view);
}

// A kernel under way may look the number up, so the driver forgets it behind that work.
CUresult ArrayHandler::EndObject(Objects* objects, unsigned long long number,
                                 CUresult (*destroy)(unsigned long long)) {
  held_.frees.Poll();
  const auto found = objects->find(number);
  if (found == objects->end() || found->second.ending) return CUDA_ERROR_INVALID_VALUE;
  found->second.ending = true;
  const auto end = [this, objects, number, destroy] {
    const Owner owner = objects->at(number).owner;
    objects->erase(number);
    destroy(number);
    Unuse(owner);
    Publish();
  };
  if (held_.frees.Free(held_.streams.All(), end) != CUDA_SUCCESS) end();
  return CUDA_SUCCESS;
}

CUresult ArrayHandler::TextureDestroy(CUtexObject texture) {
  return EndObject(&textures_, texture, driver_.cuTexObjectDestroy);
}

CUresult ArrayHandler::SurfaceOfArray(CUsurfObject* surface, CUarray array) {
  held_.frees.Poll();
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (surfaces_.size() >= ipc::limits::kTexturesMax) return CUDA_ERROR_OUT_OF_MEMORY;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  const CUresult result = driver_.cuSurfObjectCreate(surface, &resource);
  if (result != CUDA_SUCCESS) return result;
  surfaces_[*surface] = {found->second.owner};
  Use(found->second.owner);
  Publish();
  return CUDA_SUCCESS;
}

CUresult ArrayHandler::SurfaceDestroy(CUsurfObject surface) {
  return EndObject(&surfaces_, surface, driver_.cuSurfObjectDestroy);
}

// --- copies --------------------------------------------------------------------------------------

bool ArrayHandler::Has(CUarray array, const ipc::ArrayPlace& at, const ipc::BoxSize& size) const {
  const auto found = arrays_.find(array);
  return found != arrays_.end() && ipc::Contains(found->second.shape, at, size);
}

// The client waits for the mark also of a copy that is refused.
CUresult ArrayHandler::Marked(CUresult copied, const ipc::Mark& mark) {
  const CUresult marked = around_.bell->PlaceMark(around_.call->stream, mark);
  return copied != CUDA_SUCCESS ? copied : marked;
}

// The other end is device memory, pinned memory or staging: addresses are unified.
CUresult ArrayHandler::CopyBox(CUarray array, const ipc::ArrayBox& box, uint64_t memory,
                               CUstream stream, const ipc::Mark& mark) {
  CUDA_MEMCPY3D copy = BoxOfSize(box.size);
  if (box.into_array != 0) {
    SetTarget(array, box.at, &copy);
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = memory;
    copy.srcPitch = box.pitch;
    copy.srcHeight = box.rows;
  } else {
    SetSource(array, box.at, &copy);
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = memory;
    copy.dstPitch = box.pitch;
    copy.dstHeight = box.rows;
  }
  return Marked(driver_.cuMemcpy3DAsync_v2(&copy, stream), mark);
}

CUresult ArrayHandler::CopyArray(CUarray array, const ipc::ArrayBox* box, CUdeviceptr memory,
                                 CUstream stream, ipc::Mark mark) {
  uint64_t reach = 0;
  if (!Has(array, box->at, box->size) || !ipc::BoxReach(box->pitch, box->rows, box->size, &reach) ||
      !around_.door->Accepts(memory, reach)) {
    return Marked(CUDA_ERROR_INVALID_VALUE, mark);
  }
  return CopyBox(array, *box, memory, stream, mark);
}

// Decoding has checked that so many bytes lie in the staging area.
CUresult ArrayHandler::CopyArrayStaged(CUarray array, const ipc::ArrayBox* box,
                                       uint64_t staging_offset, size_t bytes, CUstream stream,
                                       ipc::Mark mark) {
  uint64_t reach = 0;
  if (!Has(array, box->at, box->size) || !ipc::BoxReach(box->pitch, box->rows, box->size, &reach) ||
      reach > bytes) {
    return Marked(CUDA_ERROR_INVALID_VALUE, mark);
  }
  const std::byte* const memory = around_.file->staging() + staging_offset;
  return CopyBox(array, *box, reinterpret_cast<uint64_t>(memory), stream, mark);
}

CUresult ArrayHandler::CopyArrays(CUarray to, const ipc::ArrayPlace* to_at, CUarray from,
                                  const ipc::ArrayPlace* from_at, const ipc::BoxSize* size,
                                  CUstream stream, ipc::Mark mark) {
  if (!Has(to, *to_at, *size) || !Has(from, *from_at, *size))
    return Marked(CUDA_ERROR_INVALID_VALUE, mark);
  CUDA_MEMCPY3D copy = BoxOfSize(*size);
  SetTarget(to, *to_at, &copy);
  SetSource(from, *from_at, &copy);
  return Marked(driver_.cuMemcpy3DAsync_v2(&copy, stream), mark);
}

}  // namespace worker

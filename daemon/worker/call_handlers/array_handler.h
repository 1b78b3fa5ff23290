// Serves the calls about arrays, textures and surfaces, and copies of arrays (ipc::ArrayCalls).
//
// An array goes when the device has done the work before its end, and no texture or surface has it
// any more: memory that goes under a texture could become another session's. Destroying waits for
// the whole context in a driver, so that is left to the reaper. Thread safety: one session's
// thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <functional>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/call_context.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/session_memory.h"
#include "ipc/calls/array_shape.h"
#include "ipc/door.h"
#include "ipc/session_file.h"

namespace worker {

class ArrayHandler final : public ipc::ArrayCalls {
 public:
  // All outlive this object.
  struct Surroundings {
    Holdings* held;
    CallContext* call;
    HandleMap* handles;
    PersistentMemory* memory;
    ipc::SessionFile* file;
    ClientBell* bell;
    ipc::Session* door;
  };
  explicit ArrayHandler(const Surroundings& around);
  ArrayHandler(const ArrayHandler&) = delete;

  // All textures, surfaces and arrays go, also those that have ended and are still there.
  void Destroy();

  // --- ipc::ArrayCalls
  CUresult ArrayCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) override;
  CUresult ArrayDestroy(CUarray array) override;
  CUresult MipmapCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                        unsigned levels) override;
  CUresult MipmapLevel(CUarray* array, CUmipmappedArray of, unsigned level) override;
  CUresult MipmapDestroy(CUmipmappedArray array) override;
  CUresult TextureOfArray(CUtexObject* texture, CUarray array, const CUDA_TEXTURE_DESC* description,
                          const ipc::TextureView* view) override;
  CUresult TextureOfMipmap(CUtexObject* texture, CUmipmappedArray array,
                           const CUDA_TEXTURE_DESC* description,
                           const ipc::TextureView* view) override;
  CUresult TextureOfMemory(CUtexObject* texture, CUdeviceptr memory,
                           const ipc::LinearTexels* texels, const CUDA_TEXTURE_DESC* description,
                           const ipc::TextureView* view) override;
  CUresult TextureDestroy(CUtexObject texture) override;
  CUresult SurfaceOfArray(CUsurfObject* surface, CUarray array) override;
  CUresult SurfaceDestroy(CUsurfObject surface) override;
  CUresult CopyArray(CUarray array, const ipc::ArrayBox* box, CUdeviceptr memory, CUstream stream,
                     ipc::Mark mark) override;
  CUresult CopyArrayStaged(CUarray array, const ipc::ArrayBox* box, uint64_t staging_offset,
                           size_t bytes, CUstream stream, ipc::Mark mark) override;
  CUresult CopyArrays(CUarray to, const ipc::ArrayPlace* to_at, CUarray from,
                      const ipc::ArrayPlace* from_at, const ipc::BoxSize* size, CUstream stream,
                      ipc::Mark mark) override;

 private:
  // The memory of an array or of a mipmapped one, by the driver's handle; none: linear memory.
  using Owner = const void*;
  struct Memory {
    int device;
    uint64_t bytes;
    std::function<void()> destroy;
    unsigned uses = 1;  // the name, and each texture and surface
  };
  struct Array {
    ipc::ArrayShape shape;
    Owner owner;
  };
  // Textures or surfaces by the driver's number; `ending`: destroyed after earlier work.
  struct Object {
    Owner owner;
    bool ending = false;
  };
  using Objects = absl::flat_hash_map<unsigned long long, Object>;

  CUresult Make(uint64_t bytes, const std::function<CUresult()>& make);
  void Added(Owner owner, Memory memory);
  void Use(Owner owner);
  void Unuse(Owner owner);
  void ReleaseAfterWork(Owner owner);
  CUresult MakeTexture(CUtexObject* texture, Owner owner, const CUDA_RESOURCE_DESC& resource,
                       const CUDA_TEXTURE_DESC& description, const ipc::TextureView& view);
  CUresult EndObject(Objects* objects, unsigned long long number,
                     CUresult (*destroy)(unsigned long long));
  void Trim(int device);
  // Tells whether another worker could rebuild the session.
  void Publish();
  // True when the array has the box.
  bool Has(CUarray array, const ipc::ArrayPlace& at, const ipc::BoxSize& size) const;
  CUresult CopyBox(CUarray array, const ipc::ArrayBox& box, uint64_t memory, CUstream stream,
                   const ipc::Mark& mark);
  CUresult Marked(CUresult copied, const ipc::Mark& mark);

  const Surroundings around_;
  const ipc::DriverTable& driver_;
  Holdings& held_;
  bool makes_ = false;  // between a question for memory and its answer
  absl::flat_hash_map<Owner, Memory> memories_;
  absl::flat_hash_map<CUarray, Array> arrays_;  // levels included
  absl::flat_hash_map<CUmipmappedArray, CUDA_ARRAY3D_DESCRIPTOR> mipmaps_;
  Objects textures_;
  Objects surfaces_;
};

}  // namespace worker

#include "shim/contexts.h"

#include <vector>

#include "base/mutex.h"
#include "shim/arrays.h"
#include "shim/device_memory.h"
#include "shim/lock_order.h"
#include "shim/memory.h"
#include "shim/modules.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/streams.h"
#include "shim/sync.h"
#include "shim/virtual_memory.h"

namespace shim {
namespace {

struct Primary {
  uint64_t value = 0;  // kept once made: a program may hold it over a release
  int retained = 0;
  unsigned flags = 0;
};

constinit base::Mutex primaries_mutex ACQUIRED_BEFORE(lock_order::kSending);
Primary primaries[ipc::limits::kLegacySlots] GUARDED_BY(primaries_mutex);

CUresult Make(int ordinal, unsigned flags, bool primary, uint64_t* value) {
  State& state = State::Process();
  Context* const context = state.contexts.Create(value);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->device = ordinal;
  context->wire = (IndexOf(*value) + 1) << 8 | State::WireOfDevice(ordinal);
  context->primary = primary;
  context->flags = flags;
  context->api_version =
      3020;  // what the driver reports for contexts of every cuCtxCreate since then
  context->id = state.NextId();
  return CUDA_SUCCESS;
}

template <class T, ipc::HandleKind kKind>
std::vector<uint64_t> ObjectsOf(const HandleTable<T, kKind>& table, uint64_t context) {
  std::vector<uint64_t> values;
  table.ForEach([&](uint64_t value, const T* object) {
    if (object->context == context) values.push_back(value);
  });
  return values;
}

struct Others {
  bool on_device = false, anywhere = false;
};

// The program's other contexts that are in use.
Others OthersThan(uint64_t context, int ordinal) {
  Others others;
  State::Process().contexts.ForEach([&](uint64_t value, const Context* other) {
    if (value == context || !other->active) return;
    others.anywhere = true;
    others.on_device = others.on_device || other->device == ordinal;
  });
  return others;
}

CUresult Empty(uint64_t value, const Context& context) {
  State& state = State::Process();
  const CUresult waited = SynchronizeDevice(context.device);
  for (uint64_t piece : ObjectsOf(state.graph_pieces, value)) {
    Post<ipc::Op::GraphEnd>(context.wire, reinterpret_cast<CUgraphExec>(piece));
  }
  for (const Textures::Entry& texture : state.textures.OfContext(value))
    Arrays::EndTexture(texture);
  for (uint64_t array : ObjectsOf(state.mipmaps, value)) Arrays::EndMipmap(array);
  for (uint64_t array : ObjectsOf(state.arrays, value)) Arrays::End(array);
  for (uint64_t event : ObjectsOf(state.events, value)) {
    Post<ipc::Op::cuEventDestroy_v2>(context.wire, reinterpret_cast<CUevent>(event));
  }
  for (uint64_t stream : ObjectsOf(Streams::Process().table, value))
    Streams::Process().Destroy(stream);
  for (uint64_t module : ObjectsOf(state.modules, value)) Modules::Unload(module);
  for (const Allocation& allocation : state.allocations.OfContext(value)) Memory::Free(allocation);
  const Others others = OthersThan(value, context.device);
  if (waited != CUDA_SUCCESS || others.on_device) return waited;
  VirtualMemory::Process().OnContextReset(context.device);
  const bool had_lane = DeviceMemory::Process().OnContextReset(context.device);
  if (!others.anywhere) return Call<ipc::Op::ContextReset>(context.wire, context.device);
  return had_lane ? Call<ipc::Op::LaneReserve>(context.wire, size_t{0}) : CUDA_SUCCESS;
}

}  // namespace

CUresult Contexts::Create(int ordinal, unsigned flags, uint64_t* value) {
  return Make(ordinal, flags, false, value);
}

CUresult Contexts::Destroy(uint64_t value) {
  Context* const context = State::Process().contexts.Find(value);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult result = Empty(value, *context);
  State::Process().contexts.Destroy(value);
  return result;
}

CUresult Contexts::RetainPrimary(int ordinal, uint64_t* value) {
  const base::MutexLock lock(&primaries_mutex);
  Primary& primary = primaries[ordinal];
  if (primary.value == 0) {
    const CUresult result = Make(ordinal, primary.flags, true, &primary.value);
    if (result != CUDA_SUCCESS) return result;
  }
  ++primary.retained;
  Context* const context = State::Process().contexts.Find(primary.value);
  context->active = true;
  *value = primary.value;
  return CUDA_SUCCESS;
}

CUresult Contexts::ReleasePrimary(int ordinal) {
  const base::MutexLock lock(&primaries_mutex);
  Primary& primary = primaries[ordinal];
  if (primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--primary.retained != 0) return CUDA_SUCCESS;
  Context* const context = State::Process().contexts.Find(primary.value);
  const CUresult result = Empty(primary.value, *context);
  context->active = false;
  ForgetKnownLaunches();
  return result;
}

CUresult Contexts::ResetPrimary(int ordinal) {
  const base::MutexLock lock(&primaries_mutex);
  Primary& primary = primaries[ordinal];
  if (primary.value == 0) return CUDA_SUCCESS;
  Context* const context = State::Process().contexts.Find(primary.value);
  return context->active ? Empty(primary.value, *context) : CUDA_SUCCESS;
}

void Contexts::SetPrimaryFlags(int ordinal, unsigned flags) {
  const base::MutexLock lock(&primaries_mutex);
  Primary& primary = primaries[ordinal];
  primary.flags = flags;
  if (primary.value != 0) State::Process().contexts.Find(primary.value)->flags = flags;
}

void Contexts::PrimaryState(int ordinal, unsigned* flags, int* active) {
  const base::MutexLock lock(&primaries_mutex);
  *flags = primaries[ordinal].flags;
  *active = primaries[ordinal].retained != 0 ? 1 : 0;
}

}  // namespace shim

// Attributes of addresses. An address of another session, or none at all, is unknown.
#include <cstring>

#include "shim/client.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/registered_memory.h"
#include "shim/state.h"
#include "shim/virtual_memory.h"

namespace local {
namespace {

using shim::Allocation;
using shim::State;

template <class T>
CUresult Store(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Of mapped memory the range is the reservation.
shim::arena::Range RangeOf(const Allocation& found) {
  shim::arena::Range range{found.base, found.bytes};
  if (found.kind == Allocation::Kind::kMapped)
    shim::VirtualMemory::Process().FindReservation(found.base, &range);
  return range;
}

CUresult Describe(const Allocation& found, uint64_t address, CUpointer_attribute attribute,
                  void* data) {
  const bool device =
      found.kind == Allocation::Kind::kDevice || found.kind == Allocation::Kind::kVariable ||
      found.kind == Allocation::Kind::kMapped || found.kind == Allocation::Kind::kGraph ||
      found.kind == Allocation::Kind::kImported;
  const bool managed = found.kind == Allocation::Kind::kManaged;
  const bool registered = found.kind == Allocation::Kind::kRegistered;
  const std::optional<uint64_t> shared =
      registered ? shim::RegisteredMemory::Process().DeviceOf(address, 1) : std::nullopt;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      const shim::Module* const module = found.kind == Allocation::Kind::kVariable
                                             ? State::Process().modules.Find(found.context)
                                             : nullptr;
      return Store(data, module != nullptr ? module->context : found.context);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Store(data, static_cast<unsigned>(device || managed ? CU_MEMORYTYPE_DEVICE
                                                                 : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (!registered) return Store(data, address);
      return shared.has_value() ? Store(data, *shared) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (found.kind == Allocation::Kind::kAlias)
        return Store(data, shim::RegisteredMemory::Process().HostOf(address).value_or(address));
      return device ? CUDA_ERROR_INVALID_VALUE : Store(data, address);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Store(data, found.id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Store(data, shim::Devices::Process().Visible(found.device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Store(data, RangeOf(found).base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Store(data, RangeOf(found).bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Store(data, found.base);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Store(data, found.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Store(data, registered && !shared.has_value() ? 0 : 1);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Store(data, static_cast<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Store(data, managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Store(data, found.kind == Allocation::Kind::kDevice && found.pool == 0 ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Store(data, 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Store(data, found.pool);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Store(data, uint64_t{0});
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// What cuPointerGetAttributes stores for an unknown address, or an attribute that does not apply.
void StoreNothing(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Store(data, -2);
      return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      Store(data, 0);
      return;
    default:
      Store(data, uint64_t{0});
  }
}

bool Find(CUdeviceptr address, Allocation* found) {
  return State::Process().allocations.Find(address, found) ||
         State::Process().variables.Find(address, found);
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  Allocation found;
  if (data == nullptr || !Find(address, &found)) return CUDA_ERROR_INVALID_VALUE;
  return Describe(found, address, attribute, data);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  if (count != 0 && (attributes == nullptr || data == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Allocation found;
  const bool known = Find(address, &found);
  for (unsigned i = 0; i < count; ++i) {
    if (!known || Describe(found, address, attributes[i], data[i]) != CUDA_SUCCESS) {
      StoreNothing(attributes[i], data[i]);
    }
  }
  return CUDA_SUCCESS;
}

// The one attribute that can be set makes copies of this memory synchronous, for other devices that
// read the memory. No session shares memory with other devices, so the attribute changes nothing.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  Allocation found;
  if (value == nullptr || !Find(address, &found)) return CUDA_ERROR_INVALID_VALUE;
  return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace local

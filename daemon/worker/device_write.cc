#include "daemon/worker/device_write.h"

#include <array>

#include "ipc/calls.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/codec_worker.h"
#include "ipc/message.h"

namespace worker {
namespace {

struct WriteRead {
  DeviceWrite write;
  bool marked = false;
};

// The parameters of cuMemcpyDtoDAsync, in order. Those of ipc::laneway::CopyDevice begin so, too.
uint32_t TakeCopy(void* target, const ipc::Slot* slots) {
  DeviceWrite& write = static_cast<WriteRead*>(target)->write;
  write.to = slots[0].As<CUdeviceptr>();
  write.from = slots[1].As<CUdeviceptr>();
  write.elements = slots[2].As<size_t>();
  return 0;
}

uint32_t TakeMarkedCopy(void* target, const ipc::Slot* slots) {
  static_cast<WriteRead*>(target)->marked = slots[4].As<ipc::Mark>().sequence != 0;
  return TakeCopy(target, slots);
}

// Those of cuMemsetD*Async.
template <class Value>
uint32_t TakeFill(void* target, const ipc::Slot* slots) {
  DeviceWrite& write = static_cast<WriteRead*>(target)->write;
  write.to = slots[0].As<CUdeviceptr>();
  write.value = slots[1].As<Value>();
  write.elements = slots[2].As<size_t>();
  write.element_bytes = sizeof(Value);
  return 0;
}

// Null for all other calls.
ipc::Invoker ReaderOfUntrusted(uint16_t op) {
  switch (static_cast<ipc::Op>(op)) {
    case ipc::Op::CopyDevice:
      return &TakeMarkedCopy;
    case ipc::Op::cuMemcpyDtoDAsync_v2:
      return &TakeCopy;
    case ipc::Op::cuMemsetD8Async:
      return &TakeFill<unsigned char>;
    case ipc::Op::cuMemsetD16Async:
      return &TakeFill<unsigned short>;
    case ipc::Op::cuMemsetD32Async:
      return &TakeFill<unsigned>;
    default:
      return nullptr;
  }
}

}  // namespace

bool IsDeviceWriteUntrusted(uint16_t op) { return ReaderOfUntrusted(op) != nullptr; }

std::optional<DeviceWrite> ReadDeviceWriteUntrusted(std::span<const std::byte> message,
                                                    ipc::Session& door) {
  const uint16_t op = ipc::HeaderAt(message).op;
  WriteRead read;
  std::array<std::byte, 64> room;
  ipc::Writer reply(room);
  const ipc::Served served =
      ipc::ServeUntrusted(static_cast<ipc::Op>(op), message.subspan(sizeof(ipc::MessageHeader)),
                          ReaderOfUntrusted(op), &read, door, &reply);
  if (!served.called || read.write.elements == 0 || read.marked) return std::nullopt;
  return read.write;
}

// The door has found all bytes, so their number is one. The piece tells of a failure when it is
// sealed.
void DeviceWrite::AddTo(unsigned number, GraphPiece* piece) const {
  piece->touched().Add(AddressSpan{to, bytes()});
  if (!IsCopy()) {
    const CUDA_MEMSET_NODE_PARAMS_v1 fill = {to, 0, value, element_bytes, elements, 1};
    (void)piece->AddFill(number, fill);
    return;
  }
  piece->touched().Add(AddressSpan{from, bytes()});
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.srcDevice = from;
  copy.WidthInBytes = bytes();
  copy.Height = copy.Depth = 1;
  (void)piece->AddCopy(number, copy);
}

}  // namespace worker

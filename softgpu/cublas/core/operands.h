// Memory that a queued call needs, looked for when the stream reaches the call and before anything
// touches it: what is not there is a fault of the device, code 700, with the call's name.
//
// Which parameters reach how far is data (ipc/calls/blas_operands.inc). An entry point describes
// its call in a CallScope (api/bind.h); what it enqueues meanwhile carries the description along.
// On a driver that cannot say what is mapped nothing is looked for. Thread safety: a scope is its
// thread's; a description is a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ipc/calls/blas_operands.h"
#include "softgpu/cublas/core/driver.h"
#include "softgpu/cublas/core/types.h"

namespace softgpu::cublas {

class CallRecord {
 public:
  static constexpr size_t kParametersMax = 24;

  CallRecord(const char* name, const ipc::blas::Family* family) : name_(name), family_(family) {}

  // Of parameter `index`: a number, or an address and the size of what it points at; 0: as a type
  // parameter says.
  void Set(size_t index, int64_t value, int64_t element_bytes) {
    values_[index] = value;
    bytes_[index] = element_bytes;
  }
  void SetDeviceScalars(bool on_device) { on_device_ = on_device; }
  // Under host pointer mode scalars are read now.
  SOFTGPU_CUBLAS_CORE void NoteZeros();

  // From inside the queued work: false when something is not there, and the stream has faulted.
  SOFTGPU_CUBLAS_CORE bool RequireMemory() const;

 private:
  class View;
  int64_t BytesOf(const ipc::blas::Operand& operand) const;
  bool IsZeroAt(const ipc::blas::Operand& operand) const;
  bool HasOperand(const ipc::blas::Operand& operand) const;

  const char* name_;
  const ipc::blas::Family* family_;
  std::array<int64_t, kParametersMax> values_{}, bytes_{};
  uint32_t zeros_ = 0;  // scalars that are known to be
  bool on_device_ = false;
};

// What this thread enqueues while one lives belongs to the call.
class CallScope {
 public:
  SOFTGPU_CUBLAS_CORE explicit CallScope(const CallRecord* record);
  SOFTGPU_CUBLAS_CORE ~CallScope();
  CallScope(const CallScope&) = delete;
  SOFTGPU_CUBLAS_CORE static const CallRecord* Current();

 private:
  const CallRecord* const outer_;
};

// For calls without a row: one region, seen from `address`. False as above.
SOFTGPU_CUBLAS_CORE bool RequireRegion(const char* name, const ipc::blas::Region& region,
                                       const void* address);

}  // namespace softgpu::cublas

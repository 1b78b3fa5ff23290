#include "softgpu/cublas/core/operands.h"

#include <algorithm>
#include <cstdio>

namespace softgpu::cublas {
namespace {

namespace blas = ipc::blas;

thread_local const CallRecord* current = nullptr;

bool CanTell() {
  const Driver* const driver = Driver::Get();
  return driver != nullptr && driver->softgpuHasMemory != nullptr &&
         driver->softgpuRaiseFault != nullptr;
}

bool Covers(uint64_t address, uint64_t bytes) {
  return Driver::Get()->softgpuHasMemory(address, bytes) != 0;
}

void RaiseFault(const char* name, uint64_t address, int64_t bytes) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: what it reaches, %lld bytes at 0x%llx, is not mapped", name,
                static_cast<long long>(bytes), static_cast<unsigned long long>(address));
  Driver::Get()->softgpuRaiseFault(CUDA_ERROR_ILLEGAL_ADDRESS, text);
}

bool AllZero(uint64_t address, int64_t bytes) {
  const char* const data = reinterpret_cast<const char*>(address);
  return std::all_of(data, data + bytes, [](char byte) { return byte == 0; });
}

}  // namespace

class CallRecord::View final : public blas::Numbers {
 public:
  explicit View(const CallRecord& record) : record_(record) {}
  int64_t Integer(uint8_t parameter) const override { return record_.values_[parameter]; }
  bool IsZero(uint8_t scalar) const override {
    if (!record_.on_device_) return (record_.zeros_ >> scalar & 1) != 0;
    for (const blas::Operand& operand : record_.family_->all()) {
      if (operand.parameter == scalar) return record_.IsZeroAt(operand);
    }
    return false;
  }

 private:
  const CallRecord& record_;
};

int64_t CallRecord::BytesOf(const blas::Operand& operand) const {
  if (operand.type == blas::kNone) return bytes_[operand.parameter];
  return ElementBytes(static_cast<cudaDataType>(values_[operand.type]));
}

bool CallRecord::IsZeroAt(const blas::Operand& operand) const {
  const uint64_t address = static_cast<uint64_t>(values_[operand.parameter]);
  return address != 0 && AllZero(address, BytesOf(operand));
}

void CallRecord::NoteZeros() {
  if (on_device_) return;
  for (const blas::Operand& gated : family_->all()) {
    for (const blas::Operand& scalar : family_->all()) {
      if (scalar.parameter == gated.unless_zero && IsZeroAt(scalar))
        zeros_ |= uint32_t{1} << scalar.parameter;
    }
  }
}

bool CallRecord::HasOperand(const blas::Operand& operand) const {
  const View view(*this);
  const int64_t bytes = BytesOf(operand);
  const uint64_t address = static_cast<uint64_t>(values_[operand.parameter]);
  if (bytes == 0 || (operand.by_mode && !on_device_)) return true;
  if (operand.optional && address == 0) return true;
  const blas::Region region = blas::RegionOf(*family_, operand, bytes, view);
  if (region.empty()) return true;
  if (!operand.array) {
    if (blas::Reaches(region, address, Covers)) return true;
    RaiseFault(name_, address, region.end);
    return false;
  }
  const int64_t count = values_[operand.count];
  if (count <= 0) return true;
  if (count > (int64_t{1} << 40) ||
      !Covers(address, static_cast<uint64_t>(count) * sizeof(uint64_t))) {
    RaiseFault(name_, address, count * static_cast<int64_t>(sizeof(uint64_t)));
    return false;
  }
  const uint64_t* const pointers = reinterpret_cast<const uint64_t*>(address);
  for (int64_t i = 0; i < count; ++i) {
    if (blas::Reaches(region, pointers[i], Covers)) continue;
    RaiseFault(name_, pointers[i], region.end);
    return false;
  }
  return true;
}

// Scalars stand first in a row, so that they may be read for what comes after.
bool CallRecord::RequireMemory() const {
  if (!CanTell()) return true;
  const std::span<const blas::Operand> operands = family_->all();
  for (const bool scalars : {true, false}) {
    for (const blas::Operand& operand : operands) {
      if (operand.by_mode == scalars && !HasOperand(operand)) return false;
    }
  }
  return true;
}

CallScope::CallScope(const CallRecord* record) : outer_(current) { current = record; }

CallScope::~CallScope() { current = outer_; }

const CallRecord* CallScope::Current() { return current; }

bool RequireRegion(const char* name, const blas::Region& region, const void* address) {
  if (!CanTell()) return true;
  const uint64_t from = reinterpret_cast<uint64_t>(address);
  if (blas::Reaches(region, from, Covers)) return true;
  RaiseFault(name, from, region.end);
  return false;
}

}  // namespace softgpu::cublas

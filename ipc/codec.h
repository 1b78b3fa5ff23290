// The wire form of calls: what client and worker codec share.
//
// A request body is, in parameter order, first every fixed-size value, then every byte range; each
// range starts at a multiple of 8 from the body's start, so that it can be used where it lies.
// Everything is little-endian, as both sides are the same machine. By role (ipc/roles.h), in the
// fixed part:
//   Value               its bytes
//   Out, In, InOut, BytesIn, BytesOut, LtAttribute    1 byte: 1 when the pointer is not null
//   CString             4 bytes: length with its NUL; 0 when the pointer is null
//   Handle, Stream, NewHandle, EndHandle    4 bytes: the name
//   HandleArray         1 byte, as for BytesIn; the names, 4 bytes each, are a range
//   DevicePtr, Result   8 bytes: the address
//   Scalar              1 byte ScalarTag, 16 bytes: the value or the address, zero-padded
//   MustBeNull          nothing
// A reply body is the status (4 bytes), then the objects of Out and InOut, then the ranges of
// BytesOut, unaligned. A failed call returns only what its roles mark so (LogOut).
//
// Nothing here allocates or throws. Thread safety: one thread at a time per object.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "ipc/calls.h"
#include "ipc/calls/capped.h"
#include "ipc/roles.h"

namespace ipc {

// True when the fixed part of a parameter of this kind is one byte, which says that the pointer is
// not null.
constexpr bool HasPresence(RoleKind kind) {
  switch (kind) {
    case RoleKind::kOut:
    case RoleKind::kIn:
    case RoleKind::kInOut:
    case RoleKind::kBytesIn:
    case RoleKind::kBytesOut:
    case RoleKind::kHandleArray:
    case RoleKind::kLtAttribute:
      return true;
    default:
      return false;
  }
}

enum class ScalarTag : uint8_t { kNull, kValue, kDevice };
inline constexpr size_t kScalarBytes = 16;

// Writes into the caller's room and never past it: once something does not fit, nothing more is
// written and ok() is false.
class Writer {
 public:
  explicit Writer(std::span<std::byte> room) : room_(room) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // `bytes` of room to fill in; null when they do not fit.
  std::byte* Grow(size_t bytes) {
    if (!ok_ || room_.size() - used_ < bytes) {
      ok_ = false;
      return nullptr;
    }
    std::byte* at = room_.data() + used_;
    used_ += bytes;
    return at;
  }
  void Raw(const void* data, size_t bytes) {
    std::byte* at = Grow(bytes);
    if (at != nullptr && bytes != 0) std::memcpy(at, data, bytes);
  }
  template <class T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Raw(&value, sizeof value);
  }
  void AlignTo8() {
    static constexpr std::byte kZeros[8] = {};
    Raw(kZeros, (8 - used_ % 8) % 8);
  }
  void Clear() { used_ = 0, ok_ = true; }

  bool ok() const { return ok_; }
  size_t size() const { return used_; }

 private:
  std::span<std::byte> room_;
  size_t used_ = 0;
  bool ok_ = true;
};

// Reads untrusted bytes; every method returns false, or null, when they end early.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  // The next `bytes`, where they lie; null when there are fewer.
  const std::byte* View(size_t bytes) {
    if (in_.size() - at_ < bytes) return nullptr;
    const std::byte* view = in_.data() + at_;
    at_ += bytes;
    return view;
  }
  bool Raw(void* data, size_t bytes) {
    const std::byte* view = View(bytes);
    if (view == nullptr) return false;
    if (bytes != 0) std::memcpy(data, view, bytes);
    return true;
  }
  template <class T>
  bool Get(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Raw(value, sizeof *value);
  }
  bool AlignTo8() { return View((8 - at_ % 8) % 8) != nullptr; }
  bool AtEnd() const { return at_ == in_.size(); }

 private:
  std::span<const std::byte> in_;
  size_t at_ = 0;
};

// The parameters of a set (ParamSets), in order: for (size_t i : Members(row.sets.ranges)).
class Members {
 public:
  class Iterator {
   public:
    explicit Iterator(uint32_t left) : left_(left) {}
    size_t operator*() const { return static_cast<size_t>(std::countr_zero(left_)); }
    Iterator& operator++() {
      left_ &= left_ - 1;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return left_ != other.left_; }

   private:
    uint32_t left_;
  };
  explicit Members(uint32_t set) : set_(set) {}
  Iterator begin() const { return Iterator(set_); }
  Iterator end() const { return Iterator(0); }

 private:
  uint32_t set_;
};

// The parameters of one call by address: values[i] points at the C value of parameter i.
using Values = const void* const*;

// The integer value of a Value parameter.
[[gnu::always_inline]] inline int64_t IntegerOf(const Param& param, const void* value) {
  const auto load = [value]<class T>(T loaded) {
    std::memcpy(&loaded, value, sizeof loaded);
    return static_cast<int64_t>(loaded);
  };
  switch (param.bytes) {
    case 1:
      return param.is_signed ? load(int8_t{}) : load(uint8_t{});
    case 2:
      return param.is_signed ? load(int16_t{}) : load(uint16_t{});
    case 4:
      return param.is_signed ? load(int32_t{}) : load(uint32_t{});
    case 8:
      return load(int64_t{});
    default:
      return 0;
  }
}

// The value of a Value parameter that counts something; a negative one is none.
[[gnu::always_inline]] inline uint64_t CountOf(std::span<const Param> params, size_t index,
                                               Values values) {
  const int64_t count = IntegerOf(params[index], values[index]);
  return params[index].is_signed && count < 0 ? 0 : static_cast<uint64_t>(count);
}

// How many bytes the pointer parameter `index` reaches, by its role and the values of the
// parameters that it names; a negative count is none, an overflow UINT64_MAX. REQUIRES: the
// parameters that it names are Value parameters.
[[gnu::always_inline]] inline uint64_t ReachOf(std::span<const Param> params, size_t index,
                                               Values values) {
  const Param& param = params[index];
  const std::array<uint16_t, 4>& length = param.role.length;
  switch (param.role.rule) {
    case LengthRule::kConstant:
      return length[0];
    case LengthRule::kParam: {
      const uint64_t count = CountOf(params, length[0], values);
      if (param.role.kind == RoleKind::kDevicePtr) return CappedProduct(count, length[1]);
      if (param.role.kind != RoleKind::kValue) return CappedProduct(count, param.bytes);
      return length[1] == 0 ? count : CappedProduct(count, CountOf(params, length[1], values));
    }
    case LengthRule::kPitched: {
      const uint64_t pitch = CountOf(params, length[0], values);
      const uint64_t row = CappedProduct(CountOf(params, length[1], values), length[3]);
      const uint64_t rows = CountOf(params, length[2], values);
      return row == 0 || rows == 0 ? 0 : CappedSum(CappedProduct(pitch, rows - 1), row);
    }
    default:
      return 0;
  }
}

// Writes status and results of a call; false when they do not fit into a message. A failed call
// returns only what its roles mark so.
bool PutReply(const Row& row, uint32_t status, Values values, Writer& out);

// The size of one element of a cuBLAS data type, or of alpha and beta under a compute type; 0:
// unknown.
size_t BytesOfDataType(cudaDataType type);
size_t BytesOfScale(cublasComputeType_t compute, cudaDataType operand);

// True for attributes of a matmul descriptor whose value is a device address.
bool IsAddress(cublasLtMatmulDescAttributes_t attribute);
// True for those whose value points into the process; no such value crosses.
bool IsHostPointer(cublasLtMatmulDescAttributes_t attribute);

}  // namespace ipc

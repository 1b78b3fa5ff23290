// Roles: how each parameter of a call crosses the wire.
//
// A row of ipc/calls/*.inc gives one role per parameter, or none when all follow from the C types.
// The compiler binds roles to the C types (BindParams) and yields one Param per parameter; the
// codec interprets those, so a row costs a table entry, not an instantiation. Parameters count
// from 0.
//
//   Value                   fixed size, as it is; Below(k) refuses values of k and more
//   Staging(n [, m])        an offset such that n [* m] bytes from it lie in the staging area
//   Out, In, InOut          pointer to one plain object: filled by the call, read by it, or both
//   BytesIn(n), BytesOut(n) array whose element count is parameter n (void counts bytes)
//   LogOut(n)               BytesOut that is returned when the call fails, too
//   CString                 text up to its NUL
//   Handle, Stream          an object that the client named; Stream is the role of every CUstream
//   NewHandle, EndHandle    the call creates, or destroys, the object of that name
//   HandleArray(n)          parameter n tells how many names
//   DevicePtr               an address in the session's arena or pinned window; its extent is the
//                           callee's business. DevicePtr(n [, scale]) checks n * scale bytes,
//                           DeviceBytes(k) checks k, DevicePitched(pitch, width, height, scale) the
//                           rows of a block whose rows hold width * scale bytes; LtMatrix(n) is a
//                           matrix as the layout in parameter n says. Operands of cuBLAS, whose
//                           extent is more than a product, have rows of their own
//                           (ipc/calls/blas_operands.inc)
//   Scalar                  alpha, beta, ...: by value or a device address, by the pointer mode;
//                           ScalarOfType(n) is sized by the data type in parameter n,
//                           ScalarOfCompute(n, a) by compute type n and operand type a,
//                           ScalarOfDesc(n) by matmul descriptor n
//   Result                  what a reduction returns: a device address always (under host pointer
//                           mode the client substitutes a pinned slot, and waits);
//                           ResultOfType(n) is sized by the data type in parameter n
//   LtAttribute(a, n)       n bytes of matmul attribute a, which may be a device address
//   MustBeNull              nothing crosses; the client refuses anything else
//
// A pointer to const, to void or to a class that is no handle must be given a role. So must an
// `unsigned long long`: device addresses, allocation handles and texture objects all are one in C.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ipc/handles.h"

namespace ipc {

enum class RoleKind : uint8_t {
  kDefault,
  kValue,
  kOut,
  kIn,
  kInOut,
  kBytesIn,
  kBytesOut,
  kCString,
  kHandle,
  kStream,
  kNewHandle,
  kEndHandle,
  kHandleArray,
  kDevicePtr,
  kScalar,
  kResult,
  kLtAttribute,
  kMustBeNull,
};

// Where a length, or a scalar's size, comes from.
enum class LengthRule : uint8_t {
  kNone,
  kConstant,
  kParam,
  kPitched,
  kDataType,
  kCompute,
  kDesc,
  kLayout
};

struct Role {
  RoleKind kind = RoleKind::kDefault;
  LengthRule rule = LengthRule::kNone;
  bool on_failure = false;              // returned although the call failed
  std::array<uint16_t, 4> length = {};  // parameters or constants, by the rule
};

namespace roles {

inline constexpr Role Value{RoleKind::kValue};
inline constexpr Role Out{RoleKind::kOut};
inline constexpr Role In{RoleKind::kIn};
inline constexpr Role InOut{RoleKind::kInOut};
inline constexpr Role CString{RoleKind::kCString};
inline constexpr Role Handle{RoleKind::kHandle};
inline constexpr Role Stream{RoleKind::kStream};
inline constexpr Role NewHandle{RoleKind::kNewHandle};
inline constexpr Role EndHandle{RoleKind::kEndHandle};
inline constexpr Role Scalar{RoleKind::kScalar};
inline constexpr Role Result{RoleKind::kResult};
inline constexpr Role MustBeNull{RoleKind::kMustBeNull};

consteval Role BytesIn(uint16_t n) { return {RoleKind::kBytesIn, LengthRule::kParam, false, {n}}; }
consteval Role BytesOut(uint16_t n) {
  return {RoleKind::kBytesOut, LengthRule::kParam, false, {n}};
}
consteval Role LogOut(uint16_t n) { return {RoleKind::kBytesOut, LengthRule::kParam, true, {n}}; }
consteval Role HandleArray(uint16_t n) {
  return {RoleKind::kHandleArray, LengthRule::kParam, false, {n}};
}
consteval Role ScalarOfType(uint16_t n) {
  return {RoleKind::kScalar, LengthRule::kDataType, false, {n}};
}
consteval Role ScalarOfCompute(uint16_t n, uint16_t a) {
  return {RoleKind::kScalar, LengthRule::kCompute, false, {n, a}};
}
consteval Role ScalarOfDesc(uint16_t n) {
  return {RoleKind::kScalar, LengthRule::kDesc, false, {n}};
}
consteval Role ResultOfType(uint16_t n) {
  return {RoleKind::kResult, LengthRule::kDataType, false, {n}};
}
consteval Role LtAttribute(uint16_t a, uint16_t n) {
  return {RoleKind::kLtAttribute, LengthRule::kParam, false, {n, a}};
}

struct DevicePtrRole : Role {
  consteval Role operator()(uint16_t n, uint16_t scale = 1) const {
    return {RoleKind::kDevicePtr, LengthRule::kParam, false, {n, scale}};
  }
};
inline constexpr DevicePtrRole DevicePtr{{RoleKind::kDevicePtr}};
consteval Role DeviceBytes(uint16_t k) {
  return {RoleKind::kDevicePtr, LengthRule::kConstant, false, {k}};
}
consteval Role DevicePitched(uint16_t pitch, uint16_t width, uint16_t height, uint16_t scale) {
  return {RoleKind::kDevicePtr, LengthRule::kPitched, false, {pitch, width, height, scale}};
}
consteval Role LtMatrix(uint16_t n) {
  return {RoleKind::kDevicePtr, LengthRule::kLayout, false, {n}};
}
consteval Role Below(uint16_t k) { return {RoleKind::kValue, LengthRule::kConstant, false, {k}}; }
consteval Role Staging(uint16_t n, uint16_t m = 0) {
  return {RoleKind::kValue, LengthRule::kParam, false, {n, m}};
}

}  // namespace roles

// One parameter of one call: a role, bound to the parameter's C type.
struct Param {
  Role role;
  HandleKind handle = HandleKind::kNone;
  uint16_t bytes =
      0;  // of the value; of the pointee for Out, In, InOut and arrays; of a typed scalar
  bool is_signed = false;  // of a value
  // The bytes of the object behind a pointer, or behind each pointer of an array; 0: the C type
  // does not tell.
  uint16_t element = 0;
};
inline constexpr size_t kParamsMax = 24;
inline constexpr size_t kValueBytesMax = 16;
inline constexpr size_t kObjectBytesMax = 4096;

namespace internal {

template <class T>
concept Complete = requires {
  sizeof(T);
};

template <class T>
consteval uint16_t SizeOr(uint16_t otherwise) {
  if constexpr (std::is_void_v<T> || std::is_function_v<T>) {
    return otherwise;
  } else if constexpr (Complete<T>) {
    return sizeof(T) <= 0xffff ? static_cast<uint16_t>(sizeof(T)) : 0;
  } else {
    return otherwise;
  }
}

// What the C type of a parameter says by itself.
struct CType {
  uint16_t bytes = 0;
  uint16_t pointee_bytes = 0;  // 0: no pointer, or the pointee has no size
  uint16_t element_bytes = 0;  // the same, through an array of pointers
  bool pointer = false;
  bool void_pointee = false;
  bool const_pointee = false;
  bool scalar_pointee = false;  // arithmetic or enum
  bool is_signed = false;
  bool wide = false;  // unsigned long long, or a pointer to it
  HandleKind handle = HandleKind::kNone;
  HandleKind pointee_handle = HandleKind::kNone;
};

template <class A>
consteval CType Describe() {
  using T = std::remove_pointer_t<A>;
  using U = std::remove_cv_t<T>;
  CType c;
  c.bytes = sizeof(A);
  c.pointer = std::is_pointer_v<A>;
  c.is_signed = std::is_signed_v<A> || std::is_enum_v<A>;
  c.handle = kKindOf<std::remove_cv_t<A>>;
  c.wide = std::is_same_v<U, unsigned long long>;
  if constexpr (std::is_pointer_v<A>) {
    c.void_pointee = std::is_void_v<T>;
    c.const_pointee = std::is_const_v<T>;
    c.scalar_pointee = std::is_arithmetic_v<U> || std::is_enum_v<U>;
    c.pointee_bytes = SizeOr<T>(0);
    c.element_bytes =
        SizeOr<std::conditional_t<std::is_pointer_v<U>, std::remove_pointer_t<U>, U>>(0);
    c.pointee_handle = kKindOf<U>;
  }
  return c;
}

consteval RoleKind DefaultKind(const CType& c) {
  if (c.handle == HandleKind::kStream) return RoleKind::kStream;
  if (c.handle != HandleKind::kNone) return RoleKind::kHandle;
  if (c.wide) return RoleKind::kDefault;
  if (!c.pointer) return RoleKind::kValue;
  return c.scalar_pointee && !c.const_pointee ? RoleKind::kOut : RoleKind::kDefault;
}

// True when `role` can carry a parameter of type `c` among `count` parameters.
consteval bool Fits(const Role& role, const CType& c, size_t count) {
  switch (role.kind) {
    case RoleKind::kDefault:
      return false;
    case RoleKind::kValue:
      return !c.pointer && c.bytes <= kValueBytesMax;
    case RoleKind::kOut:
    case RoleKind::kInOut:
      return c.pointer && !c.const_pointee && c.pointee_bytes != 0 &&
             c.pointee_bytes <= kObjectBytesMax && c.pointee_handle == HandleKind::kNone;
    case RoleKind::kIn:
      return c.pointer && c.pointee_bytes != 0 && c.pointee_bytes <= kObjectBytesMax;
    case RoleKind::kBytesOut:
      return c.pointer && !c.const_pointee && (c.void_pointee || c.pointee_bytes != 0) &&
             role.length[0] < count;
    case RoleKind::kBytesIn:
      return c.pointer && (c.void_pointee || c.pointee_bytes != 0) && role.length[0] < count;
    case RoleKind::kCString:
      return c.pointer && c.const_pointee && c.pointee_bytes == 1;
    case RoleKind::kHandle:
    case RoleKind::kEndHandle:
      return c.handle != HandleKind::kNone;
    case RoleKind::kStream:
      return c.handle == HandleKind::kStream;
    case RoleKind::kNewHandle:
      return c.pointer && c.pointee_handle != HandleKind::kNone;
    case RoleKind::kHandleArray:
      return c.pointer && c.pointee_handle != HandleKind::kNone && role.length[0] < count;
    case RoleKind::kDevicePtr:
      return c.bytes == 8 && (c.pointer || c.wide);
    case RoleKind::kScalar:
    case RoleKind::kResult:
      return c.pointer && (role.rule == LengthRule::kNone ? c.pointee_bytes != 0 : c.void_pointee);
    case RoleKind::kLtAttribute:
      return c.pointer && c.void_pointee && role.length[1] < count;
    case RoleKind::kMustBeNull:
      return c.pointer;
  }
  return false;
}

consteval Param BindOne(const Role& role, const CType& c) {
  Param p{role, c.handle, c.bytes, c.is_signed, c.element_bytes};
  if (p.role.kind == RoleKind::kDefault) p.role.kind = DefaultKind(c);
  const RoleKind kind = p.role.kind;
  if (kind == RoleKind::kNewHandle || kind == RoleKind::kHandleArray) p.handle = c.pointee_handle;
  if (c.pointer && kind != RoleKind::kHandle && kind != RoleKind::kStream &&
      kind != RoleKind::kEndHandle && kind != RoleKind::kDevicePtr) {
    p.bytes = c.void_pointee ? 1 : c.pointee_bytes;
  }
  return p;
}

template <class Signature>
struct Binder;
template <class R, class... A>
struct Binder<R(A...)> {
  static constexpr size_t kCount = sizeof...(A);
  using Params = std::array<Param, kCount>;
  static_assert(kCount <= kParamsMax);

  static consteval Params Bind(const std::array<Role, kCount>& given) {
    const std::array<CType, kCount> types = {Describe<A>()...};
    Params params = {};
    for (size_t i = 0; i < kCount; ++i) params[i] = BindOne(given[i], types[i]);
    return params;
  }
  // The first parameter whose role is missing or does not fit its type; kCount when all are well.
  static consteval size_t FirstUnfit(const Params& params) {
    const std::array<CType, kCount> types = {Describe<A>()...};
    for (size_t i = 0; i < kCount; ++i) {
      if (!Fits(params[i].role, types[i], kCount)) return i;
    }
    return kCount;
  }
};

}  // namespace internal

// One Param per parameter of `Signature`; no roles at all means each type's own.
template <class Signature, class... R>
consteval typename internal::Binder<Signature>::Params BindParams(const R&... given) {
  constexpr size_t kCount = internal::Binder<Signature>::kCount;
  static_assert(sizeof...(R) == 0 || sizeof...(R) == kCount,
                "give a role for every parameter, or for none");
  std::array<Role, kCount> all = {};
  if constexpr (sizeof...(R) == kCount) all = {static_cast<const Role&>(given)...};
  return internal::Binder<Signature>::Bind(all);
}

}  // namespace ipc

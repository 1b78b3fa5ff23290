// How a request is encoded: the one algorithm of EncodeRequest and RequestBytesMax, for calls whose
// row is known when the program runs (AnyCall), and for calls whose row the compiler knows
// (CallOf<op>). The second costs an instantiation for each call, and an eighth of the instructions:
// it is for the call that programs make most. Included by codec_client.cc alone.
// Thread safety: as the Caller's and the Writer's.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "ipc/calls/laneway_params.h"
#include "ipc/codec_client.h"
#include "ipc/message.h"

namespace ipc {

class AnyCall {
 public:
  // REQUIRES: RowOf(op).remote.
  explicit AnyCall(Op op) : row_(RowOf(op)), is_laneways_(LibraryOf(op) == Library::kLaneway) {}

  std::span<const Param> params() const { return row_.params; }
  const ParamSets& sets() const { return row_.sets; }
  bool per_thread() const { return row_.per_thread; }
  // One of Laneway's own calls.
  bool IsLaneways() const { return is_laneways_; }
  // f(i) for each parameter's number.
  template <class F>
  void ForEachParam(F f) const {
    for (size_t i = 0; i < row_.params.size(); ++i) f(i);
  }

 private:
  const Row& row_;
  const bool is_laneways_;
};

// The same of a call of Laneway's own, as constants.
template <const auto& kParams>
class CallOf {
 public:
  static constexpr std::span<const Param> params() { return kParams; }
  static constexpr const ParamSets& sets() { return kSets; }
  static constexpr bool per_thread() { return false; }
  static constexpr bool IsLaneways() { return true; }
  template <class F>
  [[gnu::always_inline]] void ForEachParam(F f) const {
    Each(f, std::make_index_sequence<kParams.size()>());
  }

 private:
  static constexpr ParamSets kSets = internal::SetsOf(kParams);

  template <class F, size_t... i>
  [[gnu::always_inline]] static void Each(F& f, std::index_sequence<i...>) {
    (f(std::integral_constant<size_t, i>()), ...);
  }
};

inline void* PointerAt(const void* value) {
  void* pointer = nullptr;
  std::memcpy(&pointer, value, sizeof pointer);
  return pointer;
}

inline uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

inline bool IsRange(RoleKind kind) {
  return kind == RoleKind::kIn || kind == RoleKind::kInOut || kind == RoleKind::kBytesIn ||
         kind == RoleKind::kLtAttribute;
}

// The bytes behind a pointer parameter that the request, or the reply, carries.
[[gnu::always_inline]] inline uint64_t ObjectBytes(std::span<const Param> params, size_t i,
                                                   Values values) {
  return params[i].role.rule == LengthRule::kNone ? params[i].bytes : ReachOf(params, i, values);
}

// Two passes: first the fixed part of every parameter, then the ranges (arrays, texts). The worker
// thus knows all lengths before it comes to the first range.
template <class Call>
class RequestEncoder {
 public:
  RequestEncoder(const Call& call, Values values, Caller& caller, Writer& out)
      : call_(call), values_(values), caller_(caller), out_(out) {}

  Encoded Run() {
    call_.ForEachParam([this](auto i) {
      if (!Fine()) return;
      if (call_.IsLaneways()) RefuseNull(i);
      Fixed(i);
    });
    call_.ForEachParam([this](auto i) {
      if (Fine() && (call_.sets().ranges >> i & 1) != 0) Range(i);
    });
    if (Fine() && !out_.ok()) Refuse(Refusal::kTooLong);
    if (Fine()) EndNames();
    if (!Fine()) {
      for (size_t i = 0; i < result_.new_names; ++i) {
        caller_.Forget(result_.names[i].kind, result_.names[i].id);
      }
      result_.new_names = 0;
    }
    return result_;
  }

 private:
  bool Fine() const { return result_.refusal == Refusal::kNone; }
  void Refuse(Refusal why) { result_.refusal = why; }

  // The vendor's functions judge null arguments themselves. Laneway's own calls may have one null
  // argument, the log of a load without logs; the worker ends a session that sends another.
  [[gnu::always_inline]] void RefuseNull(size_t i) {
    const Param& param = Params()[i];
    const RoleKind kind = param.role.kind;
    if (kind == RoleKind::kValue || kind == RoleKind::kStream || kind == RoleKind::kDevicePtr ||
        param.role.on_failure || PointerAt(values_[i]) != nullptr) {
      return;
    }
    if (kind == RoleKind::kHandle || kind == RoleKind::kEndHandle)
      return Refuse(Refusal::kBadHandle);
    const bool many = kind == RoleKind::kBytesIn || kind == RoleKind::kBytesOut;
    if (!many || ObjectBytes(Params(), i, values_) != 0) Refuse(Refusal::kBadValue);
  }

  [[gnu::always_inline]] void Fixed(size_t i) {
    const Param& param = Params()[i];
    switch (param.role.kind) {
      case RoleKind::kValue:
        return PutValue(i);
      case RoleKind::kOut:
      case RoleKind::kIn:
      case RoleKind::kInOut:
      case RoleKind::kBytesIn:
      case RoleKind::kBytesOut:
      case RoleKind::kHandleArray:
      case RoleKind::kLtAttribute:
        return out_.Put<uint8_t>(PointerAt(values_[i]) != nullptr);
      case RoleKind::kCString:
        return PutTextLength(i);
      case RoleKind::kHandle:
      case RoleKind::kStream:
        PutName(param.handle, PointerAt(values_[i]));
        return;
      case RoleKind::kEndHandle: {
        const HandleId id = PutName(param.handle, PointerAt(values_[i]));
        if (Fine() && id != HandleId::kNull && !IsClientName(id)) Refuse(Refusal::kBadHandle);
        return;
      }
      case RoleKind::kNewHandle:
        return PutNewName(i);
      case RoleKind::kDevicePtr:
        return PutAddress(i);
      case RoleKind::kScalar:
        return PutScalar(i);
      case RoleKind::kResult:
        return PutResult(i);
      case RoleKind::kMustBeNull:
        if (PointerAt(values_[i]) != nullptr) Refuse(Refusal::kNotSupported);
        return;
      case RoleKind::kDefault:
        assert(false);
    }
  }

  [[gnu::always_inline]] void PutValue(size_t i) {
    const Param& param = Params()[i];
    if (param.role.rule == LengthRule::kConstant &&
        static_cast<uint64_t>(IntegerOf(param, values_[i])) >= param.role.length[0]) {
      return Refuse(Refusal::kBadValue);
    }
    out_.Raw(values_[i], param.bytes);
  }

  // The text itself is a range, with its NUL.
  void PutTextLength(size_t i) {
    const char* text = static_cast<const char*>(PointerAt(values_[i]));
    const size_t bytes = text == nullptr ? 0 : std::strlen(text) + 1;
    if (bytes > kBodyBytesMax) return Refuse(Refusal::kTooLong);
    out_.Put(static_cast<uint32_t>(bytes));
  }

  // Null names the legacy stream where a stream is expected. Of any other kind it crosses as null,
  // for the vendor's function to judge.
  [[gnu::always_inline]] HandleId IdOf(HandleKind kind, const void* value) {
    HandleId id = HandleId::kNull;
    const bool found = kind == HandleKind::kStream
                           ? caller_.FindStream(value, call_.per_thread(), &id)
                           : value == nullptr || caller_.Find(kind, value, &id);
    if (!found) Refuse(Refusal::kBadHandle);
    return id;
  }

  [[gnu::always_inline]] HandleId PutName(HandleKind kind, const void* value) {
    const HandleId id = IdOf(kind, value);
    out_.Put(id);
    return id;
  }

  // The client names the object before the worker makes it, so a later call may use the name
  // without waiting for this one.
  void PutNewName(size_t i) {
    NewName name{Params()[i].handle};
    name.out = static_cast<void**>(PointerAt(values_[i]));
    if (name.out == nullptr) return Refuse(Refusal::kBadValue);
    assert(result_.new_names < kNewHandlesMax);
    if (!caller_.Name(name.kind, &name.id, &name.value)) return Refuse(Refusal::kTooManyHandles);
    result_.names[result_.new_names++] = name;
    out_.Put(name.id);
  }

  void PutAddress(size_t i) {
    const uint64_t address = AddressOf(PointerAt(values_[i]));
    // What a layout says lies in the worker.
    const LengthRule rule = Params()[i].role.rule;
    const bool known = rule != LengthRule::kNone && rule != LengthRule::kLayout;
    const uint64_t bytes = known ? ReachOf(Params(), i, values_) : 1;
    // A null of unknown extent is the callee's to judge.
    const bool free_pass = known ? bytes == 0 : address == 0;
    if (!free_pass && !caller_.Accepts(address, bytes)) return Refuse(Refusal::kBadAddress);
    out_.Put(address);
  }

  // The object whose pointer mode rules this row's scalars: the descriptor that a role names, else
  // the library handle, which is the first parameter.
  HandleId ModeOwner(size_t i, HandleKind* kind) {
    const Role& role = Params()[i].role;
    const size_t owner = role.rule == LengthRule::kDesc ? role.length[0] : 0;
    *kind = Params()[owner].handle;
    HandleId id = HandleId::kNull;
    const void* value = PointerAt(values_[owner]);
    if (value == nullptr || !caller_.Find(*kind, value, &id)) Refuse(Refusal::kBadHandle);
    return id;
  }

  // 0: the codec does not know the type that the call's arguments name.
  size_t ScalarBytes(size_t i, HandleId owner) {
    const Role& role = Params()[i].role;
    const auto value_of = [this](size_t j) { return IntegerOf(Params()[j], values_[j]); };
    switch (role.rule) {
      case LengthRule::kDataType:
        return BytesOfDataType(static_cast<cudaDataType>(value_of(role.length[0])));
      case LengthRule::kCompute:
        return BytesOfScale(static_cast<cublasComputeType_t>(value_of(role.length[0])),
                            static_cast<cudaDataType>(value_of(role.length[1])));
      case LengthRule::kDesc:
        return caller_.ScalarBytes(owner);
      default:
        return Params()[i].bytes;
    }
  }

  // A tag says how the worker must read the bytes: as a value, or as an address on the device.
  void PutScalar(size_t i) {
    const void* pointer = PointerAt(values_[i]);
    std::byte bytes[kScalarBytes] = {};
    ScalarTag tag = ScalarTag::kNull;
    HandleKind kind = HandleKind::kNone;
    const HandleId owner = ModeOwner(i, &kind);
    if (!Fine()) return;
    if (pointer != nullptr && caller_.ScalarsOnDevice(kind, owner)) {
      const uint64_t address = AddressOf(pointer);
      if (!caller_.Accepts(address, 1)) return Refuse(Refusal::kBadAddress);
      tag = ScalarTag::kDevice;
      std::memcpy(bytes, &address, sizeof address);
    } else if (pointer != nullptr) {
      const size_t size = ScalarBytes(i, owner);
      if (size == 0 || size > kScalarBytes) return Refuse(Refusal::kNotSupported);
      tag = ScalarTag::kValue;
      std::memcpy(bytes, pointer, size);
    }
    out_.Put(tag);
    out_.Raw(bytes, sizeof bytes);
  }

  // Under host pointer mode the device writes into a pinned slot; the caller copies from there.
  void PutResult(size_t i) {
    void* pointer = PointerAt(values_[i]);
    if (pointer == nullptr) return Refuse(Refusal::kBadValue);
    HandleKind kind = HandleKind::kNone;
    const HandleId owner = ModeOwner(i, &kind);
    if (!Fine()) return;
    uint64_t address = AddressOf(pointer);
    if (!caller_.ScalarsOnDevice(kind, owner)) {
      const size_t size = ScalarBytes(i, owner);
      if (size == 0) return Refuse(Refusal::kNotSupported);
      if (!caller_.ResultSlot(owner, pointer, size, &address)) return Refuse(Refusal::kBadValue);
      result_.results_on_host = true;
    } else if (!caller_.Accepts(address, 1)) {
      return Refuse(Refusal::kBadAddress);
    }
    out_.Put(address);
  }

  [[gnu::always_inline]] void Range(size_t i) {
    const Param& param = Params()[i];
    const RoleKind kind = param.role.kind;
    const void* pointer =
        kind == RoleKind::kCString || kind == RoleKind::kHandleArray || IsRange(kind)
            ? PointerAt(values_[i])
            : nullptr;
    if (pointer == nullptr) return;
    if (kind == RoleKind::kHandleArray) return PutNames(i, static_cast<void* const*>(pointer));
    const uint64_t bytes = kind == RoleKind::kCString
                               ? std::strlen(static_cast<const char*>(pointer)) + 1
                               : ObjectBytes(Params(), i, values_);
    if (bytes > kBodyBytesMax) return Refuse(Refusal::kTooLong);
    if (kind == RoleKind::kLtAttribute && !AttributeMayCross(i, pointer, bytes)) return;
    out_.AlignTo8();
    out_.Raw(pointer, bytes);
  }

  bool AttributeMayCross(size_t i, const void* pointer, uint64_t bytes) {
    const size_t which = Params()[i].role.length[1];
    const cublasLtMatmulDescAttributes_t attribute =
        static_cast<cublasLtMatmulDescAttributes_t>(IntegerOf(Params()[which], values_[which]));
    if (IsHostPointer(attribute)) {
      Refuse(Refusal::kNotSupported);
    } else if (IsAddress(attribute) && bytes == sizeof(uint64_t)) {
      const uint64_t address = AddressOf(PointerAt(pointer));
      if (address != 0 && !caller_.Accepts(address, 1)) Refuse(Refusal::kBadAddress);
    }
    return Fine();
  }

  void PutNames(size_t i, void* const* objects) {
    const uint64_t count = ReachOf(Params(), i, values_) / sizeof(void*);
    if (count > kBodyBytesMax / sizeof(HandleId)) return Refuse(Refusal::kTooLong);
    out_.AlignTo8();
    for (uint64_t j = 0; j < count && Fine(); ++j) PutName(Params()[i].handle, objects[j]);
  }

  // Last, when nothing can refuse the call any more.
  void EndNames() {
    for (const size_t i : Members(call_.sets().names)) {
      if (Params()[i].role.kind != RoleKind::kEndHandle) continue;
      const HandleId id = IdOf(Params()[i].handle, PointerAt(values_[i]));
      if (IsClientName(id)) caller_.Forget(Params()[i].handle, id);
    }
  }

  std::span<const Param> Params() const { return call_.params(); }

  const Call call_;
  const Values values_;
  Caller& caller_;
  Writer& out_;
  Encoded result_;
};

// An upper bound of the request body's size.
template <class Call>
size_t BodyBytesMax(const Call& call, Values values) {
  uint64_t bytes = 0;
  call.ForEachParam([&](auto i) {
    bytes += kScalarBytes + 8;  // no fixed part is longer, and room to align its range
    const RoleKind kind = call.params()[i].role.kind;
    if (kind == RoleKind::kCString && PointerAt(values[i]) != nullptr) {
      bytes = CappedSum(bytes, std::strlen(static_cast<const char*>(PointerAt(values[i]))) + 1);
    } else if (kind == RoleKind::kHandleArray || IsRange(kind)) {
      bytes = CappedSum(bytes, ObjectBytes(call.params(), i, values));
    }
  });
  return bytes < kBodyBytesMax ? static_cast<size_t>(bytes) : kBodyBytesMax;
}

}  // namespace ipc

#include "ipc/codec_client.h"

#include <cassert>

#include "ipc/message.h"

namespace ipc {

namespace {

void* PointerAt(const void* value) {
  void* pointer = nullptr;
  std::memcpy(&pointer, value, sizeof pointer);
  return pointer;
}

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool IsRange(RoleKind kind) {
  return kind == RoleKind::kIn || kind == RoleKind::kInOut || kind == RoleKind::kBytesIn ||
         kind == RoleKind::kLtAttribute;
}

// The bytes behind a pointer parameter that the request, or the reply, carries.
uint64_t ObjectBytes(std::span<const Param> params, size_t i, Values values) {
  return params[i].role.rule == LengthRule::kNone ? params[i].bytes : ReachOf(params, i, values);
}

// Two passes: first the fixed part of every parameter, then the ranges (arrays, texts). The worker
// thus knows all lengths before it comes to the first range.
class RequestEncoder {
 public:
  RequestEncoder(Op op, Values values, Caller& caller, Writer& out)
      : own_(LibraryOf(op) == Library::kLaneway),
        row_(RowOf(op)),
        params_(row_.params),
        values_(values),
        caller_(caller),
        out_(out) {}

  Encoded Run() {
    for (size_t i = 0; i < params_.size() && Fine(); ++i) {
      if (own_) RefuseNull(i);
      Fixed(i);
    }
    for (const size_t i : Members(row_.sets.ranges)) {
      if (Fine()) Range(i);
    }
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
  void RefuseNull(size_t i) {
    const Param& param = params_[i];
    const RoleKind kind = param.role.kind;
    if (kind == RoleKind::kValue || kind == RoleKind::kStream || kind == RoleKind::kDevicePtr ||
        param.role.on_failure || PointerAt(values_[i]) != nullptr) {
      return;
    }
    if (kind == RoleKind::kHandle || kind == RoleKind::kEndHandle)
      return Refuse(Refusal::kBadHandle);
    const bool many = kind == RoleKind::kBytesIn || kind == RoleKind::kBytesOut;
    if (!many || ObjectBytes(params_, i, values_) != 0) Refuse(Refusal::kBadValue);
  }

  void Fixed(size_t i) {
    const Param& param = params_[i];
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

  void PutValue(size_t i) {
    const Param& param = params_[i];
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
  HandleId IdOf(HandleKind kind, const void* value) {
    HandleId id = HandleId::kNull;
    const bool found = kind == HandleKind::kStream
                           ? caller_.FindStream(value, row_.per_thread, &id)
                           : value == nullptr || caller_.Find(kind, value, &id);
    if (!found) Refuse(Refusal::kBadHandle);
    return id;
  }

  HandleId PutName(HandleKind kind, const void* value) {
    const HandleId id = IdOf(kind, value);
    out_.Put(id);
    return id;
  }

  // The client names the object before the worker makes it, so a later call may use the name
  // without waiting for this one.
  void PutNewName(size_t i) {
    NewName name{params_[i].handle};
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
    const LengthRule rule = params_[i].role.rule;
    const bool known = rule != LengthRule::kNone && rule != LengthRule::kLayout;
    const uint64_t bytes = known ? ReachOf(params_, i, values_) : 1;
    // A null of unknown extent is the callee's to judge.
    const bool free_pass = known ? bytes == 0 : address == 0;
    if (!free_pass && !caller_.Accepts(address, bytes)) return Refuse(Refusal::kBadAddress);
    out_.Put(address);
  }

  // The object whose pointer mode rules this row's scalars: the descriptor that a role names, else
  // the library handle, which is the first parameter.
  HandleId ModeOwner(size_t i, HandleKind* kind) {
    const Role& role = params_[i].role;
    const size_t owner = role.rule == LengthRule::kDesc ? role.length[0] : 0;
    *kind = params_[owner].handle;
    HandleId id = HandleId::kNull;
    const void* value = PointerAt(values_[owner]);
    if (value == nullptr || !caller_.Find(*kind, value, &id)) Refuse(Refusal::kBadHandle);
    return id;
  }

  // 0: the codec does not know the type that the call's arguments name.
  size_t ScalarBytes(size_t i, HandleId owner) {
    const Role& role = params_[i].role;
    const auto value_of = [this](size_t j) { return IntegerOf(params_[j], values_[j]); };
    switch (role.rule) {
      case LengthRule::kDataType:
        return BytesOfDataType(static_cast<cudaDataType>(value_of(role.length[0])));
      case LengthRule::kCompute:
        return BytesOfScale(static_cast<cublasComputeType_t>(value_of(role.length[0])),
                            static_cast<cudaDataType>(value_of(role.length[1])));
      case LengthRule::kDesc:
        return caller_.ScalarBytes(owner);
      default:
        return params_[i].bytes;
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

  void Range(size_t i) {
    const Param& param = params_[i];
    const RoleKind kind = param.role.kind;
    const void* pointer =
        kind == RoleKind::kCString || kind == RoleKind::kHandleArray || IsRange(kind)
            ? PointerAt(values_[i])
            : nullptr;
    if (pointer == nullptr) return;
    if (kind == RoleKind::kHandleArray) return PutNames(i, static_cast<void* const*>(pointer));
    const uint64_t bytes = kind == RoleKind::kCString
                               ? std::strlen(static_cast<const char*>(pointer)) + 1
                               : ObjectBytes(params_, i, values_);
    if (bytes > kBodyBytesMax) return Refuse(Refusal::kTooLong);
    if (kind == RoleKind::kLtAttribute && !AttributeMayCross(i, pointer, bytes)) return;
    out_.AlignTo8();
    out_.Raw(pointer, bytes);
  }

  bool AttributeMayCross(size_t i, const void* pointer, uint64_t bytes) {
    const size_t which = params_[i].role.length[1];
    const cublasLtMatmulDescAttributes_t attribute =
        static_cast<cublasLtMatmulDescAttributes_t>(IntegerOf(params_[which], values_[which]));
    if (IsHostPointer(attribute)) {
      Refuse(Refusal::kNotSupported);
    } else if (IsAddress(attribute) && bytes == sizeof(uint64_t)) {
      const uint64_t address = AddressOf(PointerAt(pointer));
      if (address != 0 && !caller_.Accepts(address, 1)) Refuse(Refusal::kBadAddress);
    }
    return Fine();
  }

  void PutNames(size_t i, void* const* objects) {
    const uint64_t count = ReachOf(params_, i, values_) / sizeof(void*);
    if (count > kBodyBytesMax / sizeof(HandleId)) return Refuse(Refusal::kTooLong);
    out_.AlignTo8();
    for (uint64_t j = 0; j < count && Fine(); ++j) PutName(params_[i].handle, objects[j]);
  }

  // Last, when nothing can refuse the call any more.
  void EndNames() {
    for (const size_t i : Members(row_.sets.names)) {
      if (params_[i].role.kind != RoleKind::kEndHandle) continue;
      const HandleId id = IdOf(params_[i].handle, PointerAt(values_[i]));
      if (IsClientName(id)) caller_.Forget(params_[i].handle, id);
    }
  }

  const bool own_;  // one of Laneway's own calls
  const Row& row_;
  const std::span<const Param> params_;
  const Values values_;
  Caller& caller_;
  Writer& out_;
  Encoded result_;
};

}  // namespace

uint32_t StatusOf(Library library, Refusal refusal) {
  const bool driver = library == Library::kDriver || library == Library::kLaneway;
  switch (refusal) {
    case Refusal::kNone:
      return 0;
    case Refusal::kBadHandle:
      return driver ? uint32_t{CUDA_ERROR_INVALID_HANDLE} : uint32_t{CUBLAS_STATUS_NOT_INITIALIZED};
    case Refusal::kBadAddress:
    case Refusal::kBadValue:
    case Refusal::kTooLong:
      return driver ? uint32_t{CUDA_ERROR_INVALID_VALUE} : uint32_t{CUBLAS_STATUS_INVALID_VALUE};
    case Refusal::kTooManyHandles:
      return driver ? uint32_t{CUDA_ERROR_OUT_OF_MEMORY} : uint32_t{CUBLAS_STATUS_ALLOC_FAILED};
    case Refusal::kNotSupported:
      return driver ? uint32_t{CUDA_ERROR_NOT_SUPPORTED} : uint32_t{CUBLAS_STATUS_NOT_SUPPORTED};
  }
  assert(false);
  return 0;
}

size_t RequestBytesMax(Op op, Values values) {
  const std::span<const Param> params = RowOf(op).params;
  uint64_t bytes = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    bytes += kScalarBytes + 8;  // no fixed part is longer, and room to align its range
    const RoleKind kind = params[i].role.kind;
    if (kind == RoleKind::kCString && PointerAt(values[i]) != nullptr) {
      bytes += std::strlen(static_cast<const char*>(PointerAt(values[i]))) + 1;
    } else if (kind == RoleKind::kHandleArray || IsRange(kind)) {
      const uint64_t reach = ObjectBytes(params, i, values);
      if (reach > kBodyBytesMax) return kBodyBytesMax;
      bytes += reach;
    }
  }
  return bytes < kBodyBytesMax ? static_cast<size_t>(bytes) : kBodyBytesMax;
}

Encoded EncodeRequest(Op op, Values values, Caller& caller, Writer* request) {
  assert(RowOf(op).remote);
  return RequestEncoder(op, values, caller, *request).Run();
}

void DeliverNames(const Encoded& encoded) {
  for (size_t i = 0; i < encoded.new_names; ++i) *encoded.names[i].out = encoded.names[i].value;
}

bool TakeReply(Op op, Values values, const Encoded& encoded, std::span<const std::byte> reply,
               Caller& caller, uint32_t* status) {
  const Row& row = RowOf(op);
  Reader in(reply);
  if (!in.Get(status)) return false;
  if (*status == 0) {
    DeliverNames(encoded);
  } else {
    for (size_t i = 0; i < encoded.new_names; ++i) {
      caller.Forget(encoded.names[i].kind, encoded.names[i].id);
    }
    if (in.AtEnd()) return true;  // refused before the call could write a log
  }
  for (const bool ranges : {false, true}) {
    for (const size_t i : Members(row.sets.returned)) {
      const Role& role = row.params[i].role;
      if (ranges != (role.kind == RoleKind::kBytesOut)) continue;
      void* to = PointerAt(values[i]);
      if (to == nullptr || (*status != 0 && !role.on_failure)) continue;
      if (!in.Raw(to, ObjectBytes(row.params, i, values))) return false;
    }
  }
  return in.AtEnd();
}

}  // namespace ipc

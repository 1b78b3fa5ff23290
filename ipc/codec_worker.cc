#include "ipc/codec_worker.h"

#include <cassert>

#include "ipc/accepts_operands.h"
#include "ipc/message.h"

namespace ipc {

namespace {

// What a call returns lies in the scratch room first, so what fits there fits into a reply.
constexpr size_t kReturnBytesMax = (kBodyBytesMax - sizeof(uint32_t)) / 16 * 16;

// How far serving one request got.
enum class Step : uint8_t { kOn, kMalformed, kBadHandle, kBadAddress, kBadValue };

class Server {
 public:
  Server(Op op, const Row& row, std::span<const std::byte> request, Session& session)
      : own_(LibraryOf(op) == Library::kLaneway),
        computes_(LibraryOf(op) == Library::kCublas || LibraryOf(op) == Library::kCublasLt),
        family_(computes_ ? BlasFamilyOf(op) : nullptr),
        sets_(row.sets),
        params_(row.params),
        in_(request),
        session_(session),
        scratch_(session.Scratch().first(kReturnBytesMax)) {
    for (size_t i = 0; i < params_.size(); ++i) {
      std::memset(slots_[i].bytes, 0, kValueBytesMax);
      values_[i] = slots_[i].bytes;
    }
  }

  // Decodes everything, then resolves it; the callee may be called when this returns kOn.
  Step Decode() {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (!Fixed(i)) return Step::kMalformed;
    }
    if (own_ && !Whole()) return Step::kMalformed;
    for (const size_t i : Members(sets_.ranges)) {
      if (!Range(i)) return Step::kMalformed;
    }
    if (!in_.AtEnd()) return Step::kMalformed;
    for (const size_t i : Members(sets_.resolved)) {
      const Step step = Resolve(i);
      if (step != Step::kOn) return step;
    }
    if (computes_ && !AcceptsOperands(family_, params_, values(), tags_.data(), session_))
      return Step::kBadAddress;
    return sets_.scalars == 0 ? Step::kOn : ScalarMode();
  }

  const Slot* slots() const { return slots_.data(); }
  Values values() const { return values_.data(); }

  // A failed call has still ended its handles, as the driver's destroy calls have.
  void EndNames(bool success) {
    for (const size_t i : Members(sets_.names)) {
      const HandleKind kind = params_[i].handle;
      if (params_[i].role.kind == RoleKind::kEndHandle && IsClientName(ids_[i])) {
        session_.Release(kind, ids_[i]);
      }
      if (params_[i].role.kind == RoleKind::kNewHandle && success) {
        void* made = nullptr;
        std::memcpy(&made, slots_[i].As<void*>(), sizeof made);
        session_.Bind(kind, ids_[i], made);
      }
    }
  }

 private:
  template <class T>
  void Set(size_t i, const T& value) {
    static_assert(sizeof(T) <= kValueBytesMax);
    std::memcpy(slots_[i].bytes, &value, sizeof value);
  }

  bool Fixed(size_t i) {
    const Param& param = params_[i];
    switch (param.role.kind) {
      case RoleKind::kValue:
        return in_.Raw(slots_[i].bytes, param.bytes) && ValueFits(i);
      case RoleKind::kOut:
      case RoleKind::kIn:
      case RoleKind::kInOut:
      case RoleKind::kBytesIn:
      case RoleKind::kBytesOut:
      case RoleKind::kHandleArray:
      case RoleKind::kLtAttribute: {
        uint8_t present = 0;
        const bool read = in_.Get(&present) && present <= 1;
        present_ |= static_cast<uint32_t>(present) << i;
        return read;
      }
      case RoleKind::kCString:
        return in_.Get(&text_bytes_[i]);
      case RoleKind::kHandle:
      case RoleKind::kEndHandle:
      case RoleKind::kStream:
      case RoleKind::kNewHandle:
        return in_.Get(&ids_[i]);
      case RoleKind::kDevicePtr:
      case RoleKind::kResult:
        return in_.Raw(slots_[i].bytes, sizeof(uint64_t));
      case RoleKind::kScalar:
        return in_.Get(&tags_[i]) && tags_[i] <= ScalarTag::kDevice &&
               in_.Raw(slots_[i].bytes, kScalarBytes);
      case RoleKind::kMustBeNull:
        return true;
      case RoleKind::kDefault:
        break;
    }
    assert(false);
    return false;
  }

  bool ValueFits(size_t i) const {
    const Role& role = params_[i].role;
    return role.rule != LengthRule::kConstant ||
           static_cast<uint64_t>(IntegerOf(params_[i], values_[i])) < role.length[0];
  }

  // The vendor's functions judge null pointers and handles themselves; our own calls have none but
  // a log that nobody wants.
  bool Whole() const {
    for (size_t i = 0; i < params_.size(); ++i) {
      const RoleKind kind = params_[i].role.kind;
      const bool one = kind == RoleKind::kOut || kind == RoleKind::kIn || kind == RoleKind::kInOut;
      const bool many = kind == RoleKind::kBytesIn || kind == RoleKind::kBytesOut;
      const bool handle = kind == RoleKind::kHandle || kind == RoleKind::kEndHandle;
      if (one && !Present(i)) return false;
      if (many && !Present(i) && !params_[i].role.on_failure && ObjectBytes(i) != 0) return false;
      if (handle && ids_[i] == HandleId::kNull) return false;
      if (kind == RoleKind::kCString && text_bytes_[i] == 0) return false;
    }
    return true;
  }

  bool Present(size_t i) const { return (present_ >> i & 1) != 0; }

  uint64_t ObjectBytes(size_t i) const {
    return params_[i].role.rule == LengthRule::kNone ? params_[i].bytes
                                                     : ReachOf(params_, i, values());
  }

  // Points slot i at the next `bytes` of the request.
  bool View(size_t i, uint64_t bytes) {
    if (bytes > kBodyBytesMax || !in_.AlignTo8()) return false;
    const std::byte* view = in_.View(bytes);
    Set(i, view);
    return view != nullptr;
  }

  // A range that was not sent (Present) stays null, for the callee to judge.
  bool Range(size_t i) {
    switch (params_[i].role.kind) {
      case RoleKind::kIn:
      case RoleKind::kBytesIn:
      case RoleKind::kLtAttribute:
        return !Present(i) || View(i, ObjectBytes(i));
      case RoleKind::kInOut: {
        if (!Present(i)) return true;
        if (!View(i, ObjectBytes(i))) return false;
        const std::byte* sent = slots_[i].As<const std::byte*>();
        std::byte* own = Room(ObjectBytes(i));
        if (own == nullptr) return false;  // cannot be: it came in one message
        std::memcpy(own, sent, ObjectBytes(i));
        Set(i, own);
        return true;
      }
      case RoleKind::kHandleArray: {
        const uint64_t count = ReachOf(params_, i, values()) / sizeof(void*);
        return !Present(i) || (count <= kBodyBytesMax && View(i, count * sizeof(HandleId)));
      }
      case RoleKind::kCString: {
        if (text_bytes_[i] == 0) return true;
        if (!View(i, text_bytes_[i])) return false;
        const char* text = slots_[i].As<const char*>();
        return std::memchr(text, 0, text_bytes_[i]) == text + text_bytes_[i] - 1;
      }
      default:
        return true;
    }
  }

  // Zeroed room for what the callee writes: what it leaves alone must not show the worker's memory.
  std::byte* Room(uint64_t bytes) {
    const uint64_t rounded = (bytes + 15) / 16 * 16;
    if (bytes > kBodyBytesMax || scratch_.size() < rounded) return nullptr;
    std::byte* room = scratch_.data();
    scratch_ = scratch_.subspan(rounded);
    std::memset(room, 0, rounded);
    return room;
  }

  Step Resolve(size_t i) {
    const HandleKind kind = params_[i].handle;
    switch (params_[i].role.kind) {
      case RoleKind::kValue:
        return StagingStep(i);
      case RoleKind::kOut:
      case RoleKind::kBytesOut: {
        if (!Present(i)) return Step::kOn;
        const uint64_t bytes = ObjectBytes(i);
        std::byte* room = Room(bytes);
        Set(i, room);
        return room == nullptr ? Step::kBadValue : Step::kOn;
      }
      case RoleKind::kHandle:
      case RoleKind::kEndHandle:
      case RoleKind::kStream: {
        void* handle = nullptr;
        const bool fixed =
            ids_[i] == HandleId::kLegacyStream || ids_[i] == HandleId::kPerThreadStream;
        if (fixed && params_[i].role.kind == RoleKind::kEndHandle) return Step::kBadHandle;
        // The driver's null stream would order every session of the context: a client names its
        // own.
        const bool null = ids_[i] == HandleId::kNull && kind != HandleKind::kStream;
        if (!null && !session_.Translate(kind, ids_[i], &handle)) return Step::kBadHandle;
        Set(i, handle);
        return Step::kOn;
      }
      case RoleKind::kNewHandle: {
        std::byte* room = Room(sizeof(void*));
        Set(i, room);
        if (room == nullptr) return Step::kBadValue;
        return IsClientName(ids_[i]) && session_.MayName(kind, ids_[i]) ? Step::kOn
                                                                        : Step::kBadHandle;
      }
      case RoleKind::kHandleArray:
        return ResolveNames(i);
      case RoleKind::kDevicePtr:
        return AddressStep(i);
      case RoleKind::kResult:
        return family_ != nullptr ? Step::kOn : Accepts(slots_[i].As<uint64_t>(), 1);
      case RoleKind::kScalar:
        return ScalarStep(i);
      case RoleKind::kLtAttribute:
        return AttributeStep(i);
      default:
        return Step::kOn;
    }
  }

  Step Accepts(uint64_t address, uint64_t bytes) {
    return session_.Accepts(address, bytes) ? Step::kOn : Step::kBadAddress;
  }

  // Offsets into the staging area; the client wrote both numbers, so the sum may not wrap.
  Step StagingStep(size_t i) const {
    if (params_[i].role.rule != LengthRule::kParam) return Step::kOn;
    const uint64_t offset = slots_[i].As<uint64_t>();
    const uint64_t bytes = ReachOf(params_, i, values());
    const bool fits = bytes <= limits::kStagingBytes && offset <= limits::kStagingBytes - bytes;
    return fits ? Step::kOn : Step::kBadValue;
  }

  // An address whose extent the call tells must be the session's over all of it, else at its start.
  Step AddressStep(size_t i) {
    const uint64_t address = slots_[i].As<uint64_t>();
    const LengthRule rule = params_[i].role.rule;
    // What needs all parameters is asked when they are there.
    if (rule == LengthRule::kLayout || (family_ != nullptr && rule == LengthRule::kNone))
      return Step::kOn;
    const bool known = rule != LengthRule::kNone;
    const uint64_t bytes = known ? ReachOf(params_, i, values()) : 1;
    if (known ? bytes == 0 : address == 0) return Step::kOn;
    return Accepts(address, bytes);
  }

  Step ScalarStep(size_t i) {
    if (tags_[i] == ScalarTag::kNull) {
      Set(i, nullptr);
    } else if (tags_[i] == ScalarTag::kDevice) {
      return Accepts(slots_[i].As<uint64_t>(), DeviceScalarBytes(params_, i, values()));
    } else {
      std::byte* room = Room(kScalarBytes);
      if (room == nullptr) return Step::kBadValue;
      std::memcpy(room, slots_[i].bytes, kScalarBytes);
      Set(i, room);
    }
    return Step::kOn;
  }

  // An attribute may hold an address of the device. One that holds a host pointer never crosses.
  Step AttributeStep(size_t i) {
    const size_t which = params_[i].role.length[1];
    const cublasLtMatmulDescAttributes_t attribute =
        static_cast<cublasLtMatmulDescAttributes_t>(IntegerOf(params_[which], values_[which]));
    if (IsHostPointer(attribute)) return Step::kBadValue;
    if (!Present(i) || !IsAddress(attribute)) return Step::kOn;
    if (ObjectBytes(i) != sizeof(uint64_t)) return Step::kBadValue;
    uint64_t address = 0;
    std::memcpy(&address, slots_[i].As<const void*>(), sizeof address);
    return address == 0 ? Step::kOn : Accepts(address, 1);
  }

  // The callee gets an array of driver handles in place of the names.
  Step ResolveNames(size_t i) {
    if (!Present(i)) return Step::kOn;
    const uint64_t count = ReachOf(params_, i, values()) / sizeof(void*);
    const std::byte* names = slots_[i].As<const std::byte*>();
    std::byte* handles = Room(count * sizeof(void*));
    if (handles == nullptr) return Step::kBadValue;
    for (uint64_t j = 0; j < count; ++j) {
      HandleId id = HandleId::kNull;
      void* handle = nullptr;
      std::memcpy(&id, names + j * sizeof id, sizeof id);
      if (!session_.Translate(params_[i].handle, id, &handle)) return Step::kBadHandle;
      std::memcpy(handles + j * sizeof handle, &handle, sizeof handle);
    }
    Set(i, handles);
    return Step::kOn;
  }

  // All scalars and results of a call must want the same pointer mode; it is set before the call.
  Step ScalarMode() {
    bool on_host = false, on_device = false;
    size_t owner = 0;
    for (const size_t i : Members(sets_.scalars)) {
      const Role& role = params_[i].role;
      on_device |= role.kind == RoleKind::kResult;
      if (role.kind != RoleKind::kScalar) continue;
      on_host |= tags_[i] == ScalarTag::kValue;
      on_device |= tags_[i] == ScalarTag::kDevice;
      if (role.rule == LengthRule::kDesc) owner = role.length[0];
    }
    if (!on_host && !on_device) return Step::kOn;
    if (on_host && on_device) return Step::kMalformed;
    void* handle = slots_[owner].As<void*>();
    if (handle == nullptr) return Step::kBadHandle;
    return session_.UsePointerMode(params_[owner].handle, handle, on_device) ? Step::kOn
                                                                             : Step::kBadHandle;
  }

  const bool own_;       // one of Laneway's own calls
  const bool computes_;  // a library's
  const blas::Family* const family_;
  const ParamSets& sets_;
  const std::span<const Param> params_;
  Reader in_;
  Session& session_;
  std::span<std::byte> scratch_;
  // Of these, the elements of parameters that have no use for them stay unset.
  std::array<Slot, kParamsMax> slots_;
  std::array<const void*, kParamsMax> values_;
  std::array<HandleId, kParamsMax> ids_;
  std::array<uint32_t, kParamsMax> text_bytes_;
  std::array<ScalarTag, kParamsMax> tags_;
  uint32_t present_ = 0;
};

// In the client's words, so that the program gets the status that the client would have returned.
Refusal RefusalOf(Step step) {
  switch (step) {
    case Step::kBadHandle:
      return Refusal::kBadHandle;
    case Step::kBadAddress:
      return Refusal::kBadAddress;
    default:
      return Refusal::kBadValue;
  }
}

}  // namespace

Served ServeUntrusted(Op op, std::span<const std::byte> request, Invoker invoke, void* target,
                      Session& session, Writer* reply) {
  const Row& row = RowOf(op);
  assert(row.remote && reinterpret_cast<uintptr_t>(request.data()) % 8 == 0);
  Server server(op, row, request, session);
  const Step step = server.Decode();
  if (step == Step::kMalformed) return {Outcome::kMalformed};
  Served served{Outcome::kReplied};
  if (step != Step::kOn) {
    served.refusal = RefusalOf(step);
    served.status = StatusOf(LibraryOf(op), served.refusal);
  } else if (target == nullptr) {
    served.status = StatusOf(LibraryOf(op), Refusal::kNotSupported);
  } else {
    served.called = true;
    served.status = invoke(target, server.slots());
    if (served.status == static_cast<uint32_t>(kReplyLater)) return {Outcome::kLater, 0, true};
    server.EndNames(served.status == 0);
  }
  reply->Clear();
  if (served.called && PutReply(row, served.status, server.values(), *reply)) return served;
  reply->Clear();
  reply->Put(served.status);
  return served;
}

void EncodeReply(Op op, CUresult status, Values values, Writer* reply) {
  reply->Clear();
  PutReply(RowOf(op), status, values, *reply);
}

}  // namespace ipc

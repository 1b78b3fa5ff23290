#include "tests/ipc/calls/random_call.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace ipc {

namespace {

constexpr uint64_t kLengthEnd = 48;

void* HandleAt(const void* array, size_t index) {
  void* handle = nullptr;
  std::memcpy(&handle, static_cast<const std::byte*>(array) + index * sizeof handle, sizeof handle);
  return handle;
}

// The name behind what the program holds.
HandleId IdOf(HandleKind kind, void* value, bool per_thread) {
  HandleId id = HandleId::kNull;
  FakeCaller caller;
  const bool found = kind == HandleKind::kStream ? caller.FindStream(value, per_thread, &id)
                                                 : caller.Find(kind, value, &id);
  EXPECT_TRUE(found);
  return id;
}

}  // namespace

RandomCall::RandomCall(Op op, std::mt19937_64& random, bool scalars_on_device)
    : own_(LibraryOf(op) == Library::kLaneway),
      family_(BlasFamilyOf(op)),
      params_(RowOf(op).params),
      random_(random),
      scalars_on_device_(scalars_on_device) {
  for (size_t i = 0; i < params_.size(); ++i) pointers_[i] = arguments_[i].bytes;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].role.kind == RoleKind::kValue) MakeValue(i);
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].role.kind != RoleKind::kValue) MakeArgument(i);
  }
}

bool RandomCall::IsLength(size_t i) const {
  for (const Param& param : params_) {
    const Role& role = param.role;
    const size_t named = role.rule == LengthRule::kPitched ? 3
                         : role.rule == LengthRule::kNone  ? 0
                                                           : 2;
    if (role.kind == RoleKind::kValue && role.rule == LengthRule::kConstant) continue;
    for (size_t j = 0; j < named; ++j) {
      if (role.length[j] == i) return true;
    }
  }
  return false;
}

// Of an operand of cuBLAS: a small one, so that it lies in the arena, wherever it begins.
bool RandomCall::IsExtent(size_t i) const {
  if (family_ == nullptr) return false;
  for (const blas::Operand& operand : family_->all()) {
    for (const uint8_t number : {operand.rows.first, operand.rows.second, operand.rows.chosen_by,
                                 operand.columns.first, operand.columns.second, operand.step,
                                 operand.lower, operand.upper, operand.count, operand.stride}) {
      if (number == i) return true;
    }
  }
  return false;
}

bool RandomCall::IsType(size_t i) const {
  if (family_ == nullptr) return false;
  const std::span<const blas::Operand> operands = family_->all();
  return std::any_of(operands.begin(), operands.end(),
                     [i](const blas::Operand& operand) { return operand.type == i; });
}

void RandomCall::MakeValue(size_t i) {
  const Param& param = params_[i];
  uint64_t value = random_();
  if (param.role.rule == LengthRule::kConstant) value = Below(param.role.length[0]);
  if (param.role.rule == LengthRule::kParam) value = Below(1 << 20);
  if (IsLength(i)) value = Below(kLengthEnd);
  if (IsExtent(i)) value = Below(5);
  if (IsType(i)) value = CUDA_C_64F;
  for (const Param& other : params_) {  // scalars are sized by types that exist
    if (other.role.rule == LengthRule::kDataType && other.role.length[0] == i) value = CUDA_C_64F;
    if (other.role.rule == LengthRule::kCompute && other.role.length[0] == i)
      value = CUBLAS_COMPUTE_64F;
    if (other.role.kind == RoleKind::kLtAttribute && other.role.length[1] == i) {
      value = CUBLASLT_MATMUL_DESC_TRANSA;
    }
  }
  std::memcpy(arguments_[i].bytes, &value, 8);
}

size_t RandomCall::BytesBehind(size_t i) const {
  return params_[i].role.rule == LengthRule::kNone
             ? params_[i].bytes
             : static_cast<size_t>(ReachOf(params_, i, values()));
}

void RandomCall::PointAtBuffer(size_t i, size_t bytes) {
  Buffer& buffer = buffers_.emplace_back(Buffer{i, std::vector<std::byte>(bytes), {}});
  for (std::byte& byte : buffer.bytes) byte = static_cast<std::byte>(1 + Below(255));
  buffer.bytes.reserve(1);  // an empty buffer has an address, too
  SetPointer(i, buffer.bytes.data());
}

// Laneway's own calls take no null but for a log.
bool RandomCall::Null(const Param& param) {
  return (!own_ || param.role.on_failure) && Below(8) == 0;
}

void RandomCall::MakeArgument(size_t i) {
  const Param& param = params_[i];
  switch (param.role.kind) {
    case RoleKind::kOut:
    case RoleKind::kIn:
    case RoleKind::kInOut:
    case RoleKind::kBytesIn:
    case RoleKind::kBytesOut:
    case RoleKind::kLtAttribute:
      return Null(param) ? SetPointer(i, nullptr) : PointAtBuffer(i, BytesBehind(i));
    case RoleKind::kCString: {
      if (Null(param)) return SetPointer(i, nullptr);
      PointAtBuffer(i, 1 + Below(kLengthEnd));
      buffers_.back().bytes.back() = std::byte{0};
      return;
    }
    case RoleKind::kHandle:
    case RoleKind::kEndHandle:
    case RoleKind::kStream: {
      const HandleId id = static_cast<HandleId>(3 + Below(1000));
      const bool null_stream = param.role.kind == RoleKind::kStream && Below(4) == 0;
      return SetPointer(i, null_stream ? nullptr : ProgramValue(param.handle, id));
    }
    case RoleKind::kNewHandle:
      return PointAtBuffer(i, sizeof(void*));
    case RoleKind::kHandleArray: {
      PointAtBuffer(i, BytesBehind(i));
      std::vector<std::byte>& bytes = buffers_.back().bytes;
      for (size_t at = 0; at < bytes.size(); at += sizeof(void*)) {
        void* value = ProgramValue(param.handle, static_cast<HandleId>(3 + Below(1000)));
        std::memcpy(&bytes[at], &value, sizeof value);
      }
      return;
    }
    case RoleKind::kDevicePtr:
      return SetPointer(i, reinterpret_cast<void*>(kArena + Below(kArenaBytes / 2)));
    case RoleKind::kScalar:
      if (scalars_on_device_) return SetPointer(i, reinterpret_cast<void*>(kArena + Below(1024)));
      return PointAtBuffer(i, kScalarBytes);
    case RoleKind::kResult:
      return SetPointer(i, reinterpret_cast<void*>(kArena + Below(1024)));
    default:
      return SetPointer(i, nullptr);
  }
}

void RandomCall::CompareSent(size_t i, const void* got) const {
  const Param& param = params_[i];
  if (Pointer(i) == nullptr || got == nullptr) {
    EXPECT_EQ(Pointer(i), got) << "parameter " << i;
    return;
  }
  size_t bytes = BytesBehind(i);
  if (param.role.kind == RoleKind::kCString)
    bytes = std::strlen(static_cast<const char*>(Pointer(i))) + 1;
  if (param.role.kind == RoleKind::kScalar) {
    bytes = param.role.rule == LengthRule::kNone ? param.bytes : 4;
  }
  EXPECT_EQ(std::memcmp(got, Pointer(i), bytes), 0) << "parameter " << i;
}

void RandomCall::Serve(const Slot* slots) {
  for (size_t i = 0; i < params_.size(); ++i) {
    const Param& param = params_[i];
    switch (param.role.kind) {
      case RoleKind::kValue:
        EXPECT_EQ(
            std::memcmp(slots[i].bytes, arguments_[i].bytes, std::min<size_t>(param.bytes, 8)), 0);
        break;
      case RoleKind::kIn:
      case RoleKind::kInOut:
      case RoleKind::kBytesIn:
      case RoleKind::kCString:
      case RoleKind::kLtAttribute:
        CompareSent(i, slots[i].As<void*>());
        break;
      case RoleKind::kScalar:
        if (scalars_on_device_) {
          EXPECT_EQ(slots[i].As<void*>(), Pointer(i));
        } else {
          CompareSent(i, slots[i].As<void*>());
        }
        break;
      case RoleKind::kHandle:
      case RoleKind::kEndHandle:
        EXPECT_EQ(slots[i].As<void*>(),
                  DriverValue(param.handle, IdOf(param.handle, Pointer(i), false)));
        break;
      case RoleKind::kHandleArray:
        for (size_t j = 0; j < BytesBehind(i) / sizeof(void*); ++j) {
          const HandleId id = IdOf(param.handle, HandleAt(Pointer(i), j), false);
          EXPECT_EQ(HandleAt(slots[i].As<void*>(), j), DriverValue(param.handle, id));
        }
        break;
      case RoleKind::kDevicePtr:
        EXPECT_EQ(slots[i].As<void*>(), Pointer(i));
        break;
      default:
        break;
    }
  }
  for (Buffer& buffer : buffers_) {
    const RoleKind kind = params_[buffer.param].role.kind;
    if (kind != RoleKind::kOut && kind != RoleKind::kInOut && kind != RoleKind::kBytesOut) continue;
    std::byte* out = slots[buffer.param].As<std::byte*>();
    buffer.filled.resize(buffer.bytes.size());
    for (size_t i = 0; i < buffer.filled.size(); ++i) {
      buffer.filled[i] = out[i] = static_cast<std::byte>(Below(256));
    }
  }
}

void RandomCall::CheckReply() const {
  for (const Buffer& buffer : buffers_) {
    if (params_[buffer.param].role.kind == RoleKind::kNewHandle || buffer.filled.empty()) continue;
    EXPECT_EQ(buffer.bytes, buffer.filled) << "parameter " << buffer.param;
  }
}

}  // namespace ipc

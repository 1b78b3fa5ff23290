#include "tests/hostile/wild_call.h"

#include <algorithm>
#include <cstring>

#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"
#include "ipc/message.h"

namespace hostile {
namespace {

using ipc::LengthRule;
using ipc::RoleKind;
using ipc::limits::MiB;

constexpr size_t kRangeBytesMax = 8192;  // of what a call carries; more is cut short
constexpr uint32_t kTextBytesMax = 64;

}  // namespace

WildCall::WildCall(ipc::Op op, const Target& target, std::mt19937_64* random)
    : target_(target), params_(ipc::RowOf(op).params), random_(*random), scalars_(Below(3)) {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].role.kind == RoleKind::kResult) scalars_ = 2;
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    pointers_[i] = slots_[i].data();
    if (params_[i].role.kind == RoleKind::kValue) MakeValue(i);
  }
}

std::vector<std::byte> WildCall::Body() {
  body_.clear();
  for (size_t i = 0; i < params_.size(); ++i) PutFixed(i);
  for (size_t i = 0; i < params_.size(); ++i) PutRange(i);
  if (OneIn(500)) body_.resize(Below(body_.size() + 9));
  return body_;
}

// --- values --------------------------------------------------------------------------------------

bool WildCall::IsCarried(size_t i) const {
  return std::any_of(params_.begin(), params_.end(), [i](const ipc::Param& param) {
    const bool carried = param.role.kind == RoleKind::kBytesIn ||
                         param.role.kind == RoleKind::kHandleArray ||
                         param.role.kind == RoleKind::kLtAttribute;
    return carried && param.role.length[0] == i;
  });
}

bool WildCall::IsLength(size_t i) const {
  for (const ipc::Param& param : params_) {
    const ipc::Role& role = param.role;
    const size_t named = role.rule == LengthRule::kPitched ? 3 : role.rule == LengthRule::kParam;
    for (size_t j = 0; j < named; ++j) {
      if (role.length[j] == i) return true;
    }
  }
  return false;
}

uint64_t WildCall::Size() {
  switch (Below(12)) {
    case 0:
      return 0;
    case 1:
      return 1 + Below(16);
    case 2:
      return random_();  // negative, where it has a sign
    case 3:
      return Below(1ull << 40);
    case 4:
      return (1 + Below(8)) * MiB;
    default:
      return 4 * (1 + Below(1024));
  }
}

void WildCall::MakeValue(size_t i) {
  const ipc::Param& param = params_[i];
  uint64_t value = Size();
  if (param.role.rule == LengthRule::kConstant && !OneIn(100)) {
    value = Below(param.role.length[0]);
  } else if (param.role.rule == LengthRule::kParam) {
    value = OneIn(8) ? random_() : Below(ipc::limits::kStagingBytes);
  } else if (IsCarried(i) && !OneIn(200)) {
    value = Below(64);  // more than the body has ends the session
  } else if (!IsLength(i)) {
    value = OneIn(3) ? Size() : OneIn(4) ? Address() : Below(8);
  }
  std::memcpy(slots_[i].data(), &value, sizeof value);
  if (param.bytes == sizeof(ipc::Mark)) PutMark(i);
}

void WildCall::PutMark(size_t i) {
  const ipc::Mark mark{OneIn(3)   ? 0
                       : OneIn(8) ? random_()
                                  : Below(1000),
                       static_cast<uint32_t>(Below(2)), 0};
  std::memcpy(slots_[i].data(), &mark, sizeof mark);
}

// The neighbouring slots may have sessions, or none.
uint64_t WildCall::Address() {
  const uint64_t lane = target_.base + ipc::limits::kEphemeralOffset;
  const uint64_t pinned = target_.base + ipc::limits::kDeviceArenaBytes;
  switch (Below(16)) {
    case 0:
      return 0;
    case 1:
      return random_();
    case 2:
      return target_.base + ipc::limits::kSlotBytes * (1 + Below(3)) + Below(MiB);
    case 3:
      return target_.base - ipc::limits::kSlotBytes * (1 + Below(3)) + Below(MiB);
    case 4:
      return target_.base - 1 - Below(MiB);
    case 5:  // reaches over the end of the window
      return target_.base + ipc::limits::kSlotBytes - 1 - Below(64);
    case 6:
      return lane + Below(16) * 2 * MiB;
    case 7:
      return target_.base + Below(16) * 2 * MiB;
    case 8:
      return pinned + Below(2 * target_.pinned_mapped) / 4 * 4;
    case 9:
    case 10:
    case 11:
      return lane + Below(target_.lane_mapped / 2) / 16 * 16;
    default:
      return target_.base + Below(target_.mapped / 2) / 16 * 16;
  }
}

uint32_t WildCall::Name() {
  switch (Below(12)) {
    case 0:
      return static_cast<uint32_t>(Below(3));  // none, and the fixed streams
    case 1:
      return static_cast<uint32_t>(random_());
    case 2:
      return ipc::limits::kHandlesMax - static_cast<uint32_t>(Below(2));
    default:
      return 3 + static_cast<uint32_t>(Below(2 * target_.names));
  }
}

// --- the body ------------------------------------------------------------------------------------

void WildCall::PutNoise(size_t count) {
  for (size_t i = 0; i < count; ++i) body_.push_back(static_cast<std::byte>(random_()));
}

// Structures of arrays and boxes that mostly make sense, told by their sizes; others are noise.
void WildCall::PutObject(size_t bytes) {
  constexpr uint32_t kFormats[] = {CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_UNSIGNED_INT8};
  const size_t end = body_.size() + bytes;
  const auto side = [this] { return OneIn(16) ? Size() : 4 * (1 + Below(8)); };
  const auto kind = [&] {
    Put(OneIn(16) ? static_cast<uint32_t>(random_()) : kFormats[Below(2)]);
    Put(static_cast<uint32_t>(OneIn(16) ? random_() : 1ull << Below(3)));
  };
  if (bytes == sizeof(CUDA_ARRAY3D_DESCRIPTOR)) {
    for (int k = 0; k < 3; ++k) Put(OneIn(3) ? 0 : side());
    kind();
    Put(static_cast<uint32_t>(OneIn(16) ? random_() : Below(4)));
  } else if (bytes == sizeof(ipc::LinearTexels)) {
    kind();
    for (int k = 0; k < 3; ++k) Put(OneIn(4) ? 0 : side() * 16);
  } else if (bytes == sizeof(ipc::ArrayBox) || bytes == sizeof(ipc::BoxSize)) {
    while (body_.size() + 8 < end) Put(OneIn(3) ? 0 : side());
    Put(Below(2));
  }
  PutNoise(end - body_.size());
}

void WildCall::PutFixed(size_t i) {
  const ipc::Param& param = params_[i];
  if (ipc::HasPresence(param.role.kind)) {
    const bool is_there = !OneIn(200);
    present_ |= static_cast<uint32_t>(is_there) << i;
    return Put(static_cast<uint8_t>(OneIn(2000) ? 2 : is_there));
  }
  switch (param.role.kind) {
    case RoleKind::kValue:
      body_.insert(body_.end(), slots_[i].begin(), slots_[i].begin() + param.bytes);
      return;
    case RoleKind::kCString: {
      const uint32_t bytes = OneIn(200) ? 0 : 1 + static_cast<uint32_t>(Below(kTextBytesMax));
      std::memcpy(slots_[i].data(), &bytes, sizeof bytes);
      return Put(bytes);
    }
    case RoleKind::kHandle:
    case RoleKind::kEndHandle:
    case RoleKind::kNewHandle:
      return Put(Name());
    case RoleKind::kStream:
      return Put(OneIn(3) ? 1u : Name());
    case RoleKind::kDevicePtr:
    case RoleKind::kResult:
      return Put(Address());
    case RoleKind::kScalar: {
      // All of a call lie on the same side; mixed ones end the session.
      Put(static_cast<uint8_t>(OneIn(500) ? Below(4) : scalars_));
      Put(scalars_ == 2 ? Address() : Size());
      return Put(uint64_t{0});
    }
    default:
      return;  // MustBeNull: nothing crosses
  }
}

void WildCall::PutRange(size_t i) {
  const ipc::Param& param = params_[i];
  const bool is_there = (present_ >> i & 1) != 0;
  size_t bytes = 0;
  switch (param.role.kind) {
    case RoleKind::kIn:
    case RoleKind::kInOut:
    case RoleKind::kBytesIn:
    case RoleKind::kLtAttribute:
      bytes = param.role.rule == LengthRule::kNone
                  ? param.bytes
                  : std::min<uint64_t>(ipc::ReachOf(params_, i, values()), kRangeBytesMax);
      break;
    case RoleKind::kHandleArray:
      bytes = std::min<uint64_t>(ipc::ReachOf(params_, i, values()) / 2, kRangeBytesMax);
      break;
    case RoleKind::kCString: {
      uint32_t text = 0;
      std::memcpy(&text, slots_[i].data(), sizeof text);
      if (text == 0) return;
      body_.resize((body_.size() + 7) / 8 * 8);
      for (uint32_t at = 1; at < text; ++at)
        body_.push_back(static_cast<std::byte>('a' + Below(26)));
      return body_.push_back(OneIn(200) ? std::byte{'x'} : std::byte{0});
    }
    default:
      return;
  }
  if (!is_there) return;
  body_.resize((body_.size() + 7) / 8 * 8);
  if (param.role.kind == RoleKind::kIn) return PutObject(bytes);
  PutNoise(bytes);
}

}  // namespace hostile

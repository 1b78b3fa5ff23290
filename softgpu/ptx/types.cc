#include "softgpu/ptx/types.h"

#include <algorithm>
#include <iterator>

namespace softgpu::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  uint16_t bits;
};

// In the order of the enumeration.
constexpr TypeRow kTypes[] = {
    {"", Type::kNone, 0},          {"pred", Type::kPred, 1},      {"b8", Type::kB8, 8},
    {"b16", Type::kB16, 16},       {"b32", Type::kB32, 32},       {"b64", Type::kB64, 64},
    {"b128", Type::kB128, 128},    {"u8", Type::kU8, 8},          {"u16", Type::kU16, 16},
    {"u32", Type::kU32, 32},       {"u64", Type::kU64, 64},       {"s8", Type::kS8, 8},
    {"s16", Type::kS16, 16},       {"s32", Type::kS32, 32},       {"s64", Type::kS64, 64},
    {"f16", Type::kF16, 16},       {"bf16", Type::kBF16, 16},     {"tf32", Type::kTF32, 32},
    {"f32", Type::kF32, 32},       {"f64", Type::kF64, 64},       {"f16x2", Type::kF16x2, 32},
    {"bf16x2", Type::kBF16x2, 32}, {"f32x2", Type::kF32x2, 64},   {"u16x2", Type::kU16x2, 32},
    {"s16x2", Type::kS16x2, 32},   {"e4m3x2", Type::kE4M3x2, 16}, {"e5m2x2", Type::kE5M2x2, 16},
    {"e4m3", Type::kE4M3, 8},      {"e5m2", Type::kE5M2, 8},      {"b1", Type::kB1, 1},
    {"u2", Type::kU2, 2},          {"s2", Type::kS2, 2},          {"u4", Type::kU4, 4},
    {"s4", Type::kS4, 4},
};

struct SpecialRow {
  std::string_view name;
  Special special;
};

constexpr SpecialRow kSpecials[] = {
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%tid.w", Special::kZero},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ntid.w", Special::kOne},
    {"%ctaid.x", Special::kCtaidX},
    {"%ctaid.y", Special::kCtaidY},
    {"%ctaid.z", Special::kCtaidZ},
    {"%nctaid.x", Special::kNctaidX},
    {"%nctaid.y", Special::kNctaidY},
    {"%nctaid.z", Special::kNctaidZ},
    {"%laneid", Special::kLaneId},
    {"%warpid", Special::kWarpId},
    {"%nwarpid", Special::kNWarpId},
    {"%smid", Special::kSmId},
    {"%nsmid", Special::kNSmId},
    {"%gridid", Special::kGridId},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobalTimer},
    {"%globaltimer_lo", Special::kGlobalTimerLo},
    {"%globaltimer_hi", Special::kGlobalTimerHi},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%dynamic_smem_size", Special::kDynamicSharedSize},
    {"%total_smem_size", Special::kTotalSharedSize},
    {"WARP_SZ", Special::kWarpSize},
    {"%envreg1", Special::kEnvreg1},
    {"%envreg2", Special::kEnvreg2},
    {"%cluster_ctaid.x", Special::kZero},
    {"%cluster_ctaid.y", Special::kZero},
    {"%cluster_ctaid.z", Special::kZero},
    {"%cluster_nctaid.x", Special::kOne},
    {"%cluster_nctaid.y", Special::kOne},
    {"%cluster_nctaid.z", Special::kOne},
    {"%cluster_ctarank", Special::kZero},
    {"%cluster_nctarank", Special::kOne},
    {"%clusterid.x", Special::kCtaidX},
    {"%clusterid.y", Special::kCtaidY},
    {"%clusterid.z", Special::kCtaidZ},
    {"%nclusterid.x", Special::kNctaidX},
    {"%nclusterid.y", Special::kNctaidY},
    {"%nclusterid.z", Special::kNctaidZ},
    {"%is_explicit_cluster", Special::kZero},
    {"%reserved_smem_offset_begin", Special::kZero},
    {"%reserved_smem_offset_end", Special::kZero},
    {"%reserved_smem_offset_cap", Special::kZero},
    {"%reserved_smem_offset_0", Special::kZero},
    {"%reserved_smem_offset_1", Special::kZero},
    {"%aggr_smem_size", Special::kTotalSharedSize},
    {"%ctaid.w", Special::kZero},
    {"%nctaid.w", Special::kOne},
    {"%cluster_ctaid.w", Special::kZero},
    {"%cluster_nctaid.w", Special::kOne},
    {"%clusterid.w", Special::kZero},
    {"%nclusterid.w", Special::kOne},
    {"%current_graph_exec", Special::kZero64},
};

}  // namespace

uint32_t Bits(Type type) { return kTypes[static_cast<int>(type)].bits; }

std::string_view Name(Type type) { return kTypes[static_cast<int>(type)].name; }

bool IsSigned(Type type) {
  return (type >= Type::kS8 && type <= Type::kS64) || type == Type::kS2 || type == Type::kS4;
}

bool IsFloat(Type type) { return type >= Type::kF16 && type <= Type::kF32x2; }

Type TypeFromName(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name && !name.empty()) return row.type;
  }
  return Type::kNone;
}

Special SpecialFromName(std::string_view name) {
  const SpecialRow* end = std::end(kSpecials);
  const SpecialRow* found = std::find_if(std::begin(kSpecials), end,
                                         [&](const SpecialRow& row) { return row.name == name; });
  if (found != end) return found->special;
  // Performance counters count nothing here, and the driver sets no other environment registers.
  for (const std::string_view family : {"%envreg", "%pm"}) {
    if (name.substr(0, family.size()) != family || name.size() == family.size()) continue;
    const std::string_view rest = name.substr(family.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0 || digits > 2) continue;
    if (digits == rest.size()) return Special::kZero;
    if (family == "%pm" && rest.substr(digits) == "_64") return Special::kZero64;
  }
  return Special::kNone;
}

uint32_t Bits(Special special) {
  return special == Special::kGridId || special == Special::kZero64 ||
                 special == Special::kClock64 || special == Special::kGlobalTimer
             ? 64
             : 32;
}

}  // namespace softgpu::ptx

// Makes the Row array of one table: included by rows_*.cc only, once each, after
//   #define LANEWAY_TYPE(fn) the C function type of row fn
// A denied row, and a local one without roles, costs a table entry and nothing else.
#pragma once

#include "ipc/calls.h"
#include "ipc/roles.h"

namespace ipc::internal {

template <class T>
inline constexpr bool kIsStatus = std::is_same_v<T, CUresult> || std::is_same_v<T, cublasStatus_t>;
template <class Signature>
inline constexpr bool kReturnsStatus = false;
template <class R, class... A>
inline constexpr bool kReturnsStatus<R(A...)> = kIsStatus<R>;

constexpr ParamSets SetsOf(std::span<const Param> params) {
  ParamSets sets;
  for (size_t i = 0; i < params.size(); ++i) {
    const RoleKind kind = params[i].role.kind;
    const auto any = [kind](auto... kinds) { return ((kind == kinds) || ...); };
    const auto bit = [i](bool set) { return static_cast<uint32_t>(set) << i; };
    const bool plain = kind == RoleKind::kValue && params[i].role.rule != LengthRule::kParam;
    sets.ranges |= bit(any(RoleKind::kIn, RoleKind::kInOut, RoleKind::kBytesIn, RoleKind::kCString,
                           RoleKind::kHandleArray, RoleKind::kLtAttribute));
    sets.resolved |= bit(!plain && !any(RoleKind::kIn, RoleKind::kInOut, RoleKind::kBytesIn,
                                        RoleKind::kCString, RoleKind::kMustBeNull));
    sets.returned |= bit(any(RoleKind::kOut, RoleKind::kInOut, RoleKind::kBytesOut));
    sets.names |= bit(any(RoleKind::kNewHandle, RoleKind::kEndHandle));
    sets.scalars |= bit(any(RoleKind::kScalar, RoleKind::kResult));
  }
  return sets;
}

consteval bool IsPerThread(std::string_view name) {
  return name.ends_with("_ptsz") || name.ends_with("_ptds");
}

}  // namespace ipc::internal

// First pass over a table: the parameters of each row that has a wire form, checked.
#define LANEWAY_PARAMS(fn, ...)                                                            \
  inline constexpr auto k##fn = BindParams<LANEWAY_TYPE(fn)>(__VA_ARGS__);                 \
  static_assert(internal::kReturnsStatus<LANEWAY_TYPE(fn)>,                                \
                #fn " returns no status: make it kLocal");                                 \
  static_assert(internal::Binder<LANEWAY_TYPE(fn)>::FirstUnfit(k##fn) == k##fn.size(), #fn \
                ": a parameter needs an explicit role, or has one that does not fit its type");
#define LANEWAY_PARAMS_kSync(fn, ...) LANEWAY_PARAMS(fn, __VA_ARGS__)
#define LANEWAY_PARAMS_kAsync(fn, ...)                 \
  LANEWAY_PARAMS(fn, __VA_ARGS__)                      \
  static_assert(internal::SetsOf(k##fn).returned == 0, \
                #fn " returns something: a queued call cannot");
#define LANEWAY_PARAMS_kLocal(fn, ...) __VA_OPT__(LANEWAY_PARAMS(fn, __VA_ARGS__))
#define LANEWAY_PARAMS_kDeny(fn, ...)                       \
  static_assert(internal::kReturnsStatus<LANEWAY_TYPE(fn)>, \
                #fn " returns no status: make it kLocal");

// Second pass: the rows. (A literal's length by sizeof: counted by the compiler it costs seconds.)
#define LANEWAY_TEXT(literal) std::string_view(literal, sizeof(literal) - 1)
#define LANEWAY_REMOTE(fn, route, ...)          \
  Row{LANEWAY_TEXT(#fn),                        \
      Route::route,                             \
      true,                                     \
      internal::IsPerThread(LANEWAY_TEXT(#fn)), \
      {},                                       \
      LANEWAY_TEXT(#__VA_ARGS__),               \
      roles::params::k##fn,                     \
      internal::SetsOf(roles::params::k##fn)},
#define LANEWAY_ROW_kSync(fn, ...) LANEWAY_REMOTE(fn, kSync, __VA_ARGS__)
#define LANEWAY_ROW_kAsync(fn, ...) LANEWAY_REMOTE(fn, kAsync, __VA_ARGS__)
#define LANEWAY_LOCAL_1(fn, ...) LANEWAY_REMOTE(fn, kLocal, __VA_ARGS__)
#define LANEWAY_LOCAL_(fn, ...) Row{LANEWAY_TEXT(#fn), Route::kLocal},
#define LANEWAY_CONCAT(a, b) a##b
#define LANEWAY_LOCAL(has, fn, ...) LANEWAY_CONCAT(LANEWAY_LOCAL_, has)(fn, __VA_ARGS__)
#define LANEWAY_ROW_kLocal(fn, ...) LANEWAY_LOCAL(__VA_OPT__(1), fn, __VA_ARGS__)
#define LANEWAY_ROW_kDeny(fn, reason) \
  Row{LANEWAY_TEXT(#fn), Route::kDeny, false, false, LANEWAY_TEXT(reason)},

// Makes the array of invokers of one table: included by invokers_*.cc only. Calls of the same C type share
// one invoker; rows without a wire form have none.
#pragma once

#include <utility>

#include "ipc/codec_worker.h"

namespace ipc::internal {

template <class Signature>
struct FunctionInvoker;
template <class R, class... A>
struct FunctionInvoker<R(A...)> {
  static uint32_t Invoke(void* target, const Slot* slots) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return static_cast<uint32_t>(reinterpret_cast<R (*)(A...)>(target)(slots[i].As<A>()...));
    }(std::index_sequence_for<A...>());
  }
};

template <auto kMethod, class Signature>
struct MethodInvoker;
template <auto kMethod, class R, class... A>
struct MethodInvoker<kMethod, R(A...)> {
  static uint32_t Invoke(void* target, const Slot* slots) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      LanewayCalls* calls = static_cast<LanewayCalls*>(target);
      return static_cast<uint32_t>((calls->*kMethod)(slots[i].As<A>()...));
    }(std::index_sequence_for<A...>());
  }
};

}  // namespace ipc::internal

#define LANEWAY_INVOKER_kSync(fn, ...) LANEWAY_INVOKER(fn),
#define LANEWAY_INVOKER_kAsync(fn, ...) LANEWAY_INVOKER(fn),
#define LANEWAY_INVOKER_kLocal(fn, ...) __VA_OPT__(LANEWAY_INVOKER(fn)) __VA_OPT__(, ) LANEWAY_NONE##__VA_OPT__(_)
#define LANEWAY_NONE nullptr,
#define LANEWAY_NONE_
#define LANEWAY_INVOKER_kDeny(fn, ...) nullptr,

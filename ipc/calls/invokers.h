// Makes the array of invokers of one table: included by invokers_*.cc only. Calls of the same C
// type share one invoker; rows without a wire form have none.
#pragma once

#include <utility>

#include "ipc/codec_worker.h"

namespace ipc::internal {

template <class Signature>
struct FunctionInvoker;
template <class R, class... A>
struct FunctionInvoker<R(A...)> {
  static uint32_t Invoke(void* target, const Slot* slots) {
    return Call(reinterpret_cast<R (*)(A...)>(target), slots, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... i>
  static uint32_t Call(R (*function)(A...), const Slot* slots, std::index_sequence<i...>) {
    return static_cast<uint32_t>(function(slots[i].As<A>()...));
  }
};

// The method's class is the part that serves the row.
template <auto kMethod>
struct MethodInvoker;
template <class Part, class R, class... A, R (Part::*kMethod)(A...)>
struct MethodInvoker<kMethod> {
  static uint32_t Invoke(void* target, const Slot* slots) {
    return Call(static_cast<const LanewayParts*>(target)->Of<Part>(), slots,
                std::index_sequence_for<A...>());
  }

 private:
  template <size_t... i>
  static uint32_t Call(Part* calls, const Slot* slots, std::index_sequence<i...>) {
    return static_cast<uint32_t>((calls->*kMethod)(slots[i].As<A>()...));
  }
};

}  // namespace ipc::internal

#define LANEWAY_INVOKER_kSync(fn, ...) LANEWAY_INVOKER(fn),
#define LANEWAY_INVOKER_kAsync(fn, ...) LANEWAY_INVOKER(fn),
#define LANEWAY_INVOKER_kLocal(fn, ...) \
  __VA_OPT__(LANEWAY_INVOKER(fn)) __VA_OPT__(, ) LANEWAY_NONE##__VA_OPT__(_)
#define LANEWAY_NONE nullptr,
#define LANEWAY_NONE_
#define LANEWAY_INVOKER_kDeny(fn, ...) nullptr,

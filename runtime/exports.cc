// Exports every implemented row of exports.inc under its name.
//
// An ordinary definition would spell out each parameter list once more. An ifunc takes its type
// from the body; its resolver runs while the library is being relocated, so it may only return an
// address.
#include "runtime/api.h"
#include "runtime/entry.h"
#include "runtime/registration.h"

namespace {

using runtime::Needs;

// A function type without the default arguments that g++ keeps in it.
template <class T>
struct Bare;
template <class T>
struct Bare<T&> : Bare<T> {};
template <class Result, class... Args>
struct Bare<Result(Args...)> {
  using type = Result(Args...);
};

template <auto kBody, Needs kNeeds>
constexpr auto Address() {
  if constexpr (kNeeds == Needs::kPlain) {
    return kBody;
  } else {
    return &runtime::Entry<kBody, kNeeds>::Invoke;
  }
}

}  // namespace

// Resolvers are hidden, not static: clang drops a static one that only the attribute names.
#define EXPORT(name, body, address)                                                 \
  using Type_##name = Bare<decltype(runtime::api::body)>::type;                     \
  extern "C" {                                                                      \
  Type_##name* Resolve_##name() { return address; }                                 \
  __attribute__((ifunc("Resolve_" #name), visibility("default"))) Type_##name name; \
  }

#define CALL(name, needs) EXPORT(name, name, (Address<&runtime::api::name, Needs::needs>()))
#define PRIVATE(name, needs) CALL(name, needs)
#define FORWARD(name, driver_name, needs) CALL(name, needs)
#define PTSZ(name, body, needs) \
  EXPORT(name, body, (&runtime::PerThreadEntry<&runtime::api::body, Needs::needs>::Invoke))
#define PTDS(name, waiting, async_body) \
  EXPORT(name, waiting, (&runtime::WaitingEntry<&runtime::api::async_body, Type_##name>::Invoke))
#define REFUSED(name, reason)
#include "runtime/exports.inc"
#undef CALL
#undef FORWARD
#undef PRIVATE
#undef PTSZ
#undef PTDS
#undef REFUSED

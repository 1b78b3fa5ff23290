// Calls whose parameters are the driver's under other names.
//
// Much of the runtime interface is the driver interface with the types renamed: handles are the
// same pointers, enumerations the same numbers, structs the same bytes, device addresses are
// pointers. A FORWARD row of exports.inc says which driver function a call is; Forward<> converts
// the arguments. The compiler checks that both have as many parameters, each of the same size, and
// that what pointers point to has the same size too. A CUdevice is the number of the device, so
// device numbers pass unchanged.
#pragma once

#include <bit>
#include <type_traits>

#include "runtime/driver.h"

namespace runtime {

// The size of what a pointer points to; 0 when that is void, a function or not a complete type,
// or when T is no pointer.
template <class T>
constexpr size_t PointeeSize() {
  using Pointee = std::remove_pointer_t<T>;
  if constexpr (!std::is_pointer_v<T> || std::is_void_v<Pointee> || std::is_function_v<Pointee>) {
    return 0;
  } else if constexpr (requires { sizeof(Pointee); }) {
    return sizeof(Pointee);
  } else {
    return 0;
  }
}

template <class To, class From>
To Renamed(From value) {
  if constexpr (std::is_unsigned_v<To> && std::is_unsigned_v<From>) {
    static_assert(sizeof(To) >= sizeof(From));
    return value;  // some flags have 32 bits here and 64 in the driver
  } else {
    static_assert(sizeof(To) == sizeof(From),
                  "a forwarded parameter has another size in the driver");
    static_assert(PointeeSize<To>() == 0 || PointeeSize<From>() == 0 ||
                      PointeeSize<To>() == PointeeSize<From>(),
                  "a forwarded struct has another size in the driver");
    return std::bit_cast<To>(value);
  }
}

template <auto kCall, class RuntimeSignature>
struct Forward;

template <class... DriverArgs, DriverCall<CUresult(DriverArgs...)> DriverTable::*kCall,
          class... Args>
struct Forward<kCall, cudaError_t(Args...)> {
  static_assert(sizeof...(Args) == sizeof...(DriverArgs));
  static cudaError_t Body(Args... args) { return (Driver().*kCall)(Renamed<DriverArgs>(args)...); }
};

}  // namespace runtime

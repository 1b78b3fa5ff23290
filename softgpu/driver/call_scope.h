// What every entry point checks before its implementation runs, and the marks it leaves on the
// thread.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "softgpu/driver/thread_state.h"

namespace softgpu {

// Which of the common checks a call goes without.
struct CallTraits {
  bool before_init = false;  // works before cuInit and in a forked child
  bool after_fault = false;  // works after a sticky error
  bool in_callback = false;  // works inside a host function
};

// Called before initialisation: nothing about a device is asked.
inline constexpr std::string_view kBeforeInit[] = {
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuGetExportTable",
    "cuLogsRegisterCallback",
    "cuLogsCurrent",
    "cuLogsUnregisterCallback",
    "cuLogsDumpToFile",
    "cuLogsDumpToMemory",
    "cuProfilerInitialize",
    "cuProfilerStart",
    "cuProfilerStop",
};

// Work after a sticky error: they ask the driver or a device, or move a thread between contexts, or
// end one.
inline constexpr std::string_view kAfterFault[] = {
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent",
    "cuCtxPopCurrent_v2",
    "cuCtxGetDevice",
    "cuCtxGetDevice_v2",
    "cuCtxGetApiVersion",
    "cuCtxGetFlags",
    "cuCtxGetId",
    "cuCtxDestroy",
    "cuCtxDestroy_v2",
    "cuCtxDetach",
    "cuThreadExchangeStreamCaptureMode",
    "cuCtxGetStreamPriorityRange",
};

// The documentation lets a host function make no CUDA call; these touch no queue and stay harmless.
inline constexpr std::string_view kInCallback[] = {
    "cuGetErrorName",  "cuGetErrorString",   "cuDriverGetVersion",
    "cuCtxGetCurrent", "cuGetProcAddress",   "cuGetProcAddress_v2",
    "cuLogsCurrent",   "cuLogsDumpToMemory", "cuLogsDumpToFile",
};

template <size_t kSize>
constexpr bool Contains(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr CallTraits TraitsOf(std::string_view name) {
  CallTraits traits;
  traits.before_init = Contains(kBeforeInit, name);
  traits.after_fault =
      traits.before_init || name.starts_with("cuDevice") || Contains(kAfterFault, name);
  traits.in_callback = Contains(kInCallback, name);
  return traits;
}

// Lives for the length of one call. Calls do not nest: implementations call each other directly.
class CallScope {
 public:
  CallScope(const char* name, bool per_thread_default) : thread_(ThreadState::Get()), name_(name) {
    thread_.call = name;
    thread_.per_thread_default = per_thread_default;
  }
  ~CallScope() { thread_.call = nullptr; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  CUresult Check(CallTraits traits) const;
  CUresult NotSupported(std::string_view reason) const;  // logs the name once

 private:
  ThreadState& thread_;
  const char* const name_;
};

}  // namespace softgpu

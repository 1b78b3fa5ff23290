// What happens around every exported call, written once.
//
// The body of a call is an ordinary function of namespace runtime::api with the signature that the
// toolkit's headers give; exports.inc says what it needs. Entry<> prepares that, runs the body, and
// remembers a failure for cudaGetLastError. Bodies call each other directly, without this.
#pragma once

#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/thread_state.h"

namespace runtime {

enum class Needs {
  kPlain,  // nothing at all: the body is exported as it is, and records its result itself if at all
  kNothing,  // no driver; its result is recorded
  kDriver,   // the driver, initialized
  kContext,  // a current context
};

template <Needs kNeeds>
cudaError_t Prepare() {
  if constexpr (kNeeds == Needs::kNothing) return cudaSuccess;
  const cudaError_t error = LoadDriver();
  if constexpr (kNeeds == Needs::kDriver) return error;
  return error == cudaSuccess ? UseContext() : error;
}

template <auto kBody, Needs kNeeds>
struct Entry;

template <class... Args, cudaError_t (*kBody)(Args...), Needs kNeeds>
struct Entry<kBody, kNeeds> {
  static cudaError_t Invoke(Args... args) {
    cudaError_t error = Prepare<kNeeds>();
    if (error == cudaSuccess) error = kBody(args...);
    return error == cudaSuccess ? error : Record(error);
  }
};

// --- per-thread default stream
// --------------------------------------------------------------------- Programs built with
// --default-stream per-thread call name_ptsz, which differs in what stream 0 is. Arguments other
// than streams, and structs that hold one, pass unchanged.
template <class T>
T PerThread(T argument) {
  return argument;
}
inline cudaStream_t PerThread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}
struct PerThreadLaunchConfig {
  const cudaLaunchConfig_t* given;
  cudaLaunchConfig_t copy;
  operator const cudaLaunchConfig_t*() const { return given == nullptr ? nullptr : &copy; }
};
inline PerThreadLaunchConfig PerThread(const cudaLaunchConfig_t* config) {
  if (config == nullptr) return {};
  PerThreadLaunchConfig changed{config, *config};
  changed.copy.stream = PerThread(config->stream);
  return changed;
}

// The stream is changed while the call lasts: the struct also carries results back.
class PerThreadInstantiateParams {
 public:
  explicit PerThreadInstantiateParams(cudaGraphInstantiateParams* params)
      : params_(params), given_(params != nullptr ? params->uploadStream : nullptr) {
    if (params_ != nullptr) params_->uploadStream = PerThread(given_);
  }
  ~PerThreadInstantiateParams() {
    if (params_ != nullptr) params_->uploadStream = given_;
  }
  operator cudaGraphInstantiateParams*() const { return params_; }

 private:
  cudaGraphInstantiateParams* const params_;
  const cudaStream_t given_;
};
inline PerThreadInstantiateParams PerThread(cudaGraphInstantiateParams* params) {
  return PerThreadInstantiateParams(params);
}

template <auto kBody, Needs kNeeds>
struct PerThreadEntry;

template <class... Args, cudaError_t (*kBody)(Args...), Needs kNeeds>
struct PerThreadEntry<kBody, kNeeds> {
  static cudaError_t Body(Args... args) { return kBody(PerThread(args)...); }
  static cudaError_t Invoke(Args... args) { return Entry<&Body, kNeeds>::Invoke(args...); }
};

// name_ptds, the same for calls that wait: the asynchronous body on the per-thread stream, then a
// wait. Args are those of the waiting call, which has no stream.
cudaError_t WaitForPerThreadStream();

template <auto kAsyncBody, class WaitingSignature>
struct WaitingEntry;

template <auto kAsyncBody, class... Args>
struct WaitingEntry<kAsyncBody, cudaError_t(Args...)> {
  static cudaError_t Body(Args... args) {
    const cudaError_t error = kAsyncBody(args..., cudaStreamPerThread);
    return error == cudaSuccess ? WaitForPerThreadStream() : error;
  }
  static cudaError_t Invoke(Args... args) { return Entry<&Body, Needs::kContext>::Invoke(args...); }
};

}  // namespace runtime

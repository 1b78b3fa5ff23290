// Initialisation, versions, error texts, profiler switches.
#include <cstddef>
#include <iterator>

#include "shim/client.h"
#include "shim/driver/local.h"
#include "shim/state.h"

namespace local {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
#define ERROR(code, text) {code, #code, text},
#include "ipc/calls/driver_errors.inc"
#undef ERROR
};

const ErrorText* FindError(CUresult code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return shim::Client::Process().Initialize();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const found = FindError(error);
  *name = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const found = FindError(error);
  *text = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// No profiler can attach to a client: starting and stopping one does nothing.
CUresult cuProfilerStart() { return shim::Client::Process().Ready(); }
CUresult cuProfilerStop() { return shim::Client::Process().Ready(); }

}  // namespace local

#include "runtime/error.h"

namespace runtime {

cudaError_t ToError(CUresult result) {
  switch (static_cast<int>(result)) {
#define ERROR(name, text) case name:
#include "runtime/errors.inc"
#undef ERROR
    return static_cast<cudaError_t>(result);
    default:
      return cudaErrorUnknown;
  }
}

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

const char* ErrorName(cudaError_t error) {
  switch (error) {
#define ERROR(name, text) \
  case name:              \
    return #name;
#include "runtime/errors.inc"
#undef ERROR
  }
  return "unrecognized error code";
}

const char* ErrorText(cudaError_t error) {
  switch (error) {
#define ERROR(name, text) \
  case name:              \
    return text;
#include "runtime/errors.inc"
#undef ERROR
  }
  return "unrecognized error code";
}

}  // namespace runtime

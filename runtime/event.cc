// Events.
#include "runtime/api.h"
#include "runtime/driver.h"

namespace runtime::api {

// Flags are passed on by number.
static_assert(cudaEventBlockingSync == static_cast<int>(CU_EVENT_BLOCKING_SYNC));
static_assert(cudaEventDisableTiming == static_cast<int>(CU_EVENT_DISABLE_TIMING));
static_assert(cudaEventInterprocess == static_cast<int>(CU_EVENT_INTERPROCESS));
static_assert(cudaEventRecordExternal == static_cast<int>(CU_EVENT_RECORD_EXTERNAL));

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Driver().cuEventCreate(event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return Driver().cuEventCreate(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return Driver().cuEventDestroy_v2(event); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Driver().cuEventRecord(event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return Driver().cuEventRecordWithFlags(event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return Driver().cuEventQuery(event); }

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return Driver().cuEventSynchronize(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return Driver().cuEventElapsedTime_v2(milliseconds, start, end);
}

}  // namespace runtime::api

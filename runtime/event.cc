// Events.
#include "runtime/api.h"
#include "runtime/driver.h"

namespace runtime::api {

// Flags are forwarded by number.
static_assert(cudaEventBlockingSync == static_cast<int>(CU_EVENT_BLOCKING_SYNC));
static_assert(cudaEventDisableTiming == static_cast<int>(CU_EVENT_DISABLE_TIMING));
static_assert(cudaEventInterprocess == static_cast<int>(CU_EVENT_INTERPROCESS));
static_assert(cudaEventRecordExternal == static_cast<int>(CU_EVENT_RECORD_EXTERNAL));

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Driver().cuEventCreate(event, CU_EVENT_DEFAULT);
}

}  // namespace runtime::api

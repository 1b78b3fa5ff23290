// Numbers for the kernels that a traced session launches, and their names as records of the trace
// (ipc/work_records.h), each once.
//
// Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/loaded_images.h"
#include "ipc/call_trace.h"
#include "ipc/driver_table.h"

namespace worker {

class KernelNames {
 public:
  // Both outlive this object.
  KernelNames(const ipc::DriverTable& driver, const LoadedImages* images)
      : driver_(driver), images_(*images) {}

  // Another trace has begun, whose records go here.
  void Begin(const ipc::TraceWriter& writer);
  // 0: the driver has no name for it, or the record finds no room now.
  uint32_t NumberOf(CUfunction function);

 private:
  const ipc::DriverTable& driver_;
  const LoadedImages& images_;
  ipc::TraceWriter writer_;
  absl::flat_hash_map<CUfunction, uint32_t> numbers_;  // of loaded modules' functions
  uint64_t unloads_ = 0;                               // until when they are
  uint32_t last_ = 0;
};

}  // namespace worker

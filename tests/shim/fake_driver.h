// A driver for one process's tests: a table of functions under the real handlers of calls.
//
// Whatever a part below does not offer succeeds and does nothing. Parts: FakeStreams orders work,
// FakeMemory has device memory in host memory, FakeModules sees launches, FakeGraphs sees edges.
// Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "ipc/driver_table.h"

namespace shim_test {

ipc::DriverTable FakeDriver();

// The next call of the driver's function of this name fails. Functions that ask: those that call
// TakeFault().
void FailNext(const std::string& function, CUresult result);
// The result that FailNext() left for this call, once; or CUDA_SUCCESS.
CUresult TakeFault(const std::string& function);

// A handle that no object of this process has had.
inline uintptr_t NextHandle() {
  static std::atomic<uintptr_t> next{0x1000};
  return next.fetch_add(1);
}
template <class Handle>
Handle NewHandle() {
  return reinterpret_cast<Handle>(NextHandle());
}

}  // namespace shim_test

// Device memory that programs of one user share (cuIpcGetMemHandle, cuIpcOpenMemHandle).
//
// A handle names the range that the memory lies in, as the worker knows it (ipc::ShareName), and
// where in the range the memory is. The worker maps the range once more for the program that opens
// the handle, at addresses of that program's arena. Handles of one range share that mapping, and a
// handle may be opened often: the mapping ends when all that was opened is closed.
//
// Only memory of cuMemAlloc outside the lane can be shared: a lane's memory is other sessions' in
// turn. Thread safety: all methods; one thread at a time asks the worker.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "shim/lock_order.h"
#include "shim/state.h"

namespace shim {

class SharedMemory {
 public:
  static SharedMemory& Process();

  // CUDA_ERROR_INVALID_VALUE: the memory is not one that can be shared.
  CUresult Name(const Allocation& memory, CUipcMemHandle* handle);
  CUresult Open(const Context& context, uint64_t context_value, const CUipcMemHandle& handle,
                uint64_t* address);
  // One Open of this address ends. CUDA_ERROR_INVALID_VALUE: there is none.
  CUresult Close(uint64_t address);
  // All of them end: the allocation is gone from the tables already.
  void Forget(uint64_t address);

 private:
  using Token = std::pair<uint64_t, uint64_t>;
  struct Mapping {
    ipc::ShareName name;
    uint64_t address = 0;
    int device = 0;
    unsigned opened = 0;
  };
  struct Opened {
    Token token;
    unsigned times = 0;
  };
  CUresult Map(const Context& context, const ipc::ShareName& name, Mapping* mapping)
      REQUIRES(mutex_);
  void Leave(const Token& token, unsigned times) REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_BEFORE(lock_order::kSending);
  std::map<Token, Mapping> mappings_ GUARDED_BY(mutex_);
  std::map<uint64_t, Opened> opened_ GUARDED_BY(mutex_);  // by address
};

}  // namespace shim

// The client's side of the door: what encoding asks of the client's own state.
//
// CUDA reports bad handles and bad pointers at once, also for queued calls; so the client checks
// them before it sends anything. The shim implements Caller, one object per session. Thread safety:
// calls may come from any thread; the implementation locks what it must.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/handles.h"

namespace ipc {

class Caller {
 public:
  virtual ~Caller() = default;

  // The name of what the program holds as `value` (never null); false when it is no such object.
  // Not asked for streams.
  virtual bool Find(HandleKind kind, const void* value, HandleId* id) = 0;
  // The same for streams, null and the special values 1 and 2 included; `per_thread` tells what
  // null means.
  virtual bool FindStream(const void* value, bool per_thread, HandleId* id) = 0;

  // A fresh name, and the value that the program will hold; false when there are too many objects.
  virtual bool Name(HandleKind kind, HandleId* id, void** value) = 0;
  // The object is gone, or never came to be: the name may be given again.
  virtual void Forget(HandleKind kind, HandleId id) = 0;

  // True when the session may use [address, address + bytes), bytes >= 1.
  virtual bool Accepts(uint64_t address, uint64_t bytes) = 0;

  // True when this library handle, or matmul descriptor, reads scalars from device memory (and
  // writes its results there).
  virtual bool ScalarsOnDevice(HandleKind kind, HandleId id) = 0;
  // The size of alpha and beta under a matmul descriptor.
  virtual size_t ScalarBytes(HandleId matmul_desc) = 0;
  // Under host pointer mode: a device-visible slot that will receive a result of `bytes` on behalf
  // of `host`. The stub waits and copies after it has sent the call.
  virtual bool ResultSlot(HandleId library_handle, void* host, size_t bytes, uint64_t* address) = 0;
};

}  // namespace ipc

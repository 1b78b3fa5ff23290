// What a session's library handles need beyond the tables: a stream of the session, a workspace
// from its arena, and order with its other streams.
//
// A new cuBLAS handle would use the context's default stream and workspace, which all sessions
// share. The door tells this object when a handle is bound, named and released. Thread safety: one
// session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/call_context.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/session_memory.h"

namespace worker {

class BlasHandles {
 public:
  // All outlive this object.
  BlasHandles(Holdings* held, CallContext* call, PersistentMemory* memory);
  BlasHandles(const BlasHandles&) = delete;

  void OnBind(cublasHandle_t handle);
  // A call that is about to be made uses the handle: its stream is ordered for one more op, or is
  // the capture's for the time of the call.
  void OnUse(cublasHandle_t handle);
  void OnRelease(cublasHandle_t handle);
  // ipc::Session::UsePointerMode.
  bool UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device);

  // cublasSetStream has succeeded.
  void AfterSetStream();
  // A call that was captured has been made.
  void AfterCapturedCall();

  // All library objects go: cuBLAS handles at the reaper's time, for their end may wait for the
  // whole context.
  void Destroy(HandleMap* handles);

 private:
  struct State {
    CUstream stream = nullptr;
    CUdeviceptr workspace = 0;
    bool device_scalars = false;
    bool captured = false;  // a call of it was, and may use the workspace
  };

  void UseWorkspace(cublasHandle_t handle, const State& state);
  void Capture(cublasHandle_t handle, State* state);

  const Environment& environment_;
  Holdings& held_;
  const CallContext& call_;
  PersistentMemory& memory_;
  absl::flat_hash_map<cublasHandle_t, State> states_;
  cublasHandle_t captured_ = nullptr;  // whose stream is the capture's until the call is made
};

}  // namespace worker

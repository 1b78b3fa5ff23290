// The codec's view of the client's state (ipc/caller.h): names, addresses, scalar modes.
// Thread safety: as State's. FindStream and Find are asked under the send lock and note the use of
// a stream.
#pragma once

#include <array>

#include "ipc/caller.h"
#include "shim/blas_state.h"
#include "shim/state.h"

namespace shim {

class HandleResolver : public ipc::Caller {
 public:
  static HandleResolver& Process();

  bool Find(ipc::HandleKind kind, const void* value, ipc::HandleId* id) override;
  bool FindStream(const void* value, bool per_thread, ipc::HandleId* id) override;
  bool Name(ipc::HandleKind kind, ipc::HandleId* id, void** value) override;
  void Forget(ipc::HandleKind kind, ipc::HandleId id) override;
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool ScalarsOnDevice(ipc::HandleKind kind, ipc::HandleId id) override;
  size_t ScalarBytes(ipc::HandleId matmul_desc) override;
  bool ResultSlot(ipc::HandleId library_handle, void* host, size_t bytes,
                  uint64_t* address) override;

 private:
  HandleResolver();

  std::array<Names*, static_cast<size_t>(ipc::HandleKind::kCount)> names_ = {};
};

}  // namespace shim

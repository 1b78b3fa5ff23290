// The door of a session: names become the driver's handles here, and addresses are accepted or not
// (ipc::Session). It fills the CallContext of the call being decoded.
//
// A name alone (a graph's node, a workspace, a bias for later) must lie in what is the session's.
// What the device touches in this very call must be backed, too. Thread safety: one session's
// thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <memory>
#include <span>

#include "daemon/worker/call_context.h"
#include "daemon/worker/call_handlers/blas_handles.h"
#include "daemon/worker/call_handlers/stream_handler.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "ipc/door.h"

namespace worker {

class CallDoor final : public ipc::Session {
 public:
  // The objects that hear of their kinds' names. All outlive this object.
  struct Kinds {
    BlasHandles* blas;
    StreamHandler* streams;
  };
  CallDoor(Holdings* held, CallContext* call, HandleMap* handles, const Kinds& kinds);
  CallDoor(const CallDoor&) = delete;

  // --- ipc::Session
  bool Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) override;
  bool MayName(ipc::HandleKind kind, ipc::HandleId id) override;
  void Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) override;
  void Release(ipc::HandleKind kind, ipc::HandleId id) override;
  bool Accepts(uint64_t address, uint64_t bytes) override;
  bool AcceptsMatrix(uint64_t address, void* layout) override;
  bool UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) override;
  std::span<std::byte> Scratch() override { return {scratch_.get(), ipc::kBodyBytesMax}; }

 private:
  bool TranslateStream(ipc::HandleId id, void** driver_handle);

  Holdings& held_;
  CallContext& call_;
  HandleMap& handles_;
  const Kinds kinds_;
  const std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace worker

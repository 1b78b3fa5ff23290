// Memory of a session that launches of replayed runs use in place of the program's own
// (launch_orders.h, replay/versions.h): limits::kRenameBytesMax bytes, once a session.
//
// The bytes are of no use once a run is over. So the memory goes to the host without them, and
// comes back at the same address, as workspaces of libraries do (arena.h). A worker that takes the
// session over makes other scratch memory, when the client gives that worker orders.
//
// Scratch memory is made for the first graph that needs some. Only free room is used: the session
// does not wait, and other sessions give nothing up. After a refusal the worker asks again only
// when the orders were forgotten. The memory goes with the orders, and before the program is
// refused memory. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "daemon/worker/call_context.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/own_addresses.h"
#include "daemon/worker/session_memory.h"

namespace worker {

class ScratchMemory {
 public:
  virtual ~ScratchMemory() = default;
  // Where it begins; 0: there is none.
  virtual CUdeviceptr Take() = 0;
  // No launch from now on uses it.
  virtual void GiveBack() = 0;
};

class SessionScratch final : public ScratchMemory {
 public:
  // All outlive this object. `call`: whose device it is made on.
  SessionScratch(Holdings* held, const CallContext* call, PersistentMemory* memory)
      : held_(*held), call_(*call), memory_(*memory) {}
  SessionScratch(const SessionScratch&) = delete;

  // REQUIRES: the session may use the device.
  CUdeviceptr Take() override;
  void GiveBack() override;
  // The arena frees everything, or leaves it to another worker.
  void Forget() {
    state_ = State::kNone;
    address_ = 0;
  }
  // The addresses of the memory; no bytes while the session has none.
  AddressSpan span() const;

 private:
  enum class State {
    kNone,     // Take() makes it, or is refused
    kThere,    // until GiveBack() or Forget()
    kRefused,  // likewise
  };

  Holdings& held_;
  const CallContext& call_;
  PersistentMemory& memory_;
  State state_ = State::kNone;
  CUdeviceptr address_ = 0;
};

}  // namespace worker

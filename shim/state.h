// The program's driver objects by their handles, apart from its streams (shim/streams.h), and the
// calling thread's current context.
//
// Thread safety: lookups are lock-free; everything else has its own lock, said beside it.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>

#include "shim/allocations.h"
#include "shim/handle_table.h"
#include "shim/objects.h"
#include "shim/textures.h"

namespace shim {

class State {
 public:
  static State& Process();

  HandleTable<Context, ipc::HandleKind::kContext> contexts{1u << 16};
  HandleTable<Event, ipc::HandleKind::kEvent> events;
  HandleTable<Module, ipc::HandleKind::kModule> modules;
  HandleTable<Function, ipc::HandleKind::kFunction> functions;
  HandleTable<GraphPiece, ipc::HandleKind::kGraphExec> graph_pieces;
  HandleTable<Array, ipc::HandleKind::kArray> arrays;
  HandleTable<MipmappedArray, ipc::HandleKind::kMipmappedArray> mipmaps;
  Textures textures;
  Allocations allocations;
  Allocations variables;  // of modules: they may lie outside the session's slot

  // The calling thread's current context: 3, a sticky code, 201 (none) or 709 (destroyed).
  CUresult Current(Context** context, uint64_t* value = nullptr);
  // The device of the current context's messages, without a context: for calls that name a device.
  static uint32_t WireOfDevice(int device) { return static_cast<uint32_t>(device) + 1; }

  uint64_t NextId() { return last_id_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  State() = default;

  std::atomic<uint64_t> last_id_{0};
};

}  // namespace shim

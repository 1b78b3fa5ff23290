// The vendor's functions as tables of pointers, one per row of ipc/calls/*.inc, and how to fill
// them.
//
// The worker calls the driver and the libraries through these and links neither, so the same binary
// runs on a GPU, on the software GPU and on a table that does nothing. A null entry is a function
// that the library does not export: DispatchUntrusted answers "not supported" for it. Thread
// safety: plain data; constant once filled.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "ipc/calls.h"
#include "ipc/calls/vendor.h"

namespace ipc {

// Fields are in opcode order and are nothing but pointers, so a table is also an array
// (FunctionAt).
struct DriverTable {
#define CALL(fn, ...) LANEWAY_SIGNATURE(fn)* fn = nullptr;
#include "ipc/calls/driver.inc"
};

struct CublasTable {
#include "ipc/calls/cublas.inc"
};

struct CublasLtTable {
#include "ipc/calls/cublaslt.inc"
#undef CALL
};

// Loads `path` (a file name searched as dlopen does) and looks up every row of the table by its
// exact name. The library stays loaded for the life of the process. Fails when it can't be loaded,
// with the loader's words; missing functions are no failure.
absl::Status LoadDriver(const std::string& path, DriverTable* table);
absl::Status LoadCublas(const std::string& path, CublasTable* table);
absl::Status LoadCublasLt(const std::string& path, CublasLtTable* table);

// Tables whose every function succeeds and does nothing, for benchmarks of what lies before the
// driver.
const DriverTable& NullDriver();
const CublasTable& NullCublas();
const CublasLtTable& NullCublasLt();

class SessionCalls;  // these are declared in ipc/door.h
class MemoryCalls;
class CopyCalls;
class ModuleCalls;
class StreamCalls;
class GraphCalls;
class ConditionalCalls;
class OrderCalls;
class ArrayCalls;
class LanewayCalls;

// The objects that serve Laneway's own calls, one per part of the table. They outlive this object.
class LanewayParts {
 public:
  LanewayParts() = default;
  LanewayParts(SessionCalls* session, MemoryCalls* memory, CopyCalls* copies, ModuleCalls* modules,
               StreamCalls* streams, GraphCalls* graphs, ConditionalCalls* conditionals,
               OrderCalls* orders, ArrayCalls* arrays)
      : parts_(session, memory, copies, modules, streams, graphs, conditionals, orders, arrays) {}
  // One object is all parts. Null: none is there.
  LanewayParts(LanewayCalls* all);

  bool empty() const { return std::get<0>(parts_) == nullptr; }
  template <class Part>
  Part* Of() const {
    return std::get<Part*>(parts_);
  }

 private:
  std::tuple<SessionCalls*, MemoryCalls*, CopyCalls*, ModuleCalls*, StreamCalls*, GraphCalls*,
             ConditionalCalls*, OrderCalls*, ArrayCalls*>
      parts_;
};

// What serving a session needs besides the session. Null: those calls are not supported.
struct Targets {
  const DriverTable* driver = nullptr;
  const CublasTable* cublas = nullptr;
  const CublasLtTable* cublaslt = nullptr;
  LanewayParts laneway;  // all of them, or none
};

// The function of `op` as a plain pointer; null when there is none.
// REQUIRES: op is not a laneway call.
void* FunctionAt(const Targets& targets, Op op);

}  // namespace ipc

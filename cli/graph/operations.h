// The operations of one iteration, from its records: the work of the device, and the places where
// the program waited for the device. Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/graph/program_order.h"
#include "cli/graph/records.h"
#include "scheduler/streams/dependencies.h"

namespace graph {

using scheduler::streams::Touch;

struct Operation {
  enum class Kind : uint8_t {
    kKernel,
    kCopy,
    kFill,
    kLibrary,       // a call of cuBLAS or cublasLt
    kGraph,         // a graph of the program's own
    kHostFunction,  // runs on the host, in stream order
    kHostWait,      // the program has waited
  };
  Kind kind = Kind::kKernel;
  std::string name;     // untrusted: as the module names the kernel, or of the call
  uint32_t number = 0;  // of its record
  uint32_t slot = 0;    // of the program's stream; ipc::kNoTraceSlot of a host wait
  uint32_t blocks[3] = {};
  uint32_t threads[3] = {};
  std::vector<Touch> touches;  // ascending, disjoint
  std::string unknown;         // why not all touches are known; empty: they are
  int64_t time_ns = -1;        // of the device; below 0: not known
};

// The memory that one launch touches. `unknown`: why that can't be told; empty where it can.
struct Touched {
  std::vector<Touch> touches;
  std::string unknown;
};
using Prove = std::function<Touched(const SentCall& launch)>;

struct IterationWork {
  std::vector<Operation> operations;
  std::vector<Edge> order;  // the program's own; by numbers of operations
  int event_waits = 0;      // streams that wait for events
  int joins = 0;            // that Laneway put in, for memory that is used again
};

// `times_ns`: what the device took, by the number of the record.
IterationWork OperationsOf(std::span<const Record> iteration,
                           const std::map<uint32_t, int64_t>& times_ns, const Prove& prove);

}  // namespace graph

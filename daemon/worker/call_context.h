// Facts about the one call that a session's thread serves now. The door writes them while it
// decodes the call; the handlers of calls read them. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <vector>

#include "daemon/worker/own_addresses.h"
#include "daemon/worker/streams.h"
#include "ipc/handles.h"

namespace worker {

class GraphPiece;

struct CallContext {
  // Before the call's parameters are decoded.
  void Begin(bool works, GraphPiece* into) {
    serves_work = works;
    capture = into;
    stream = nullptr;
    event = {};
    blas = nullptr;
    function = nullptr;
    named.clear();
  }

  int device = -1;                // whose context is current on the session's thread; it stays
  bool serves_work = false;       // the call touches the memory that it names, now
  GraphPiece* capture = nullptr;  // the piece that the call is captured into; null: it is executed
  // The objects that the call names. When a call names several of a kind, the last of them.
  StreamTable::Stream* stream = nullptr;
  ipc::HandleId event = {};
  cublasHandle_t blas = nullptr;
  CUfunction function = nullptr;
  std::vector<AddressSpan> named;  // memory that work to come will touch
};

}  // namespace worker

// Results that library calls (dot, nrm2, amax, ...) hand to the host: the device writes them into a
// pinned slot, and the stub waits for the stream and copies. Thread safety: each thread has its own
// list; the slots are shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shim/state.h"

namespace shim {

class HostResults {
 public:
  static HostResults& OfThisThread();

  // Makes the pinned slots, once per process. Needed before the first Take: it may wait for an
  // answer, and Take runs under the send lock.
  static CUresult Prepare(const Context& context, uint64_t context_value);

  // A slot for a result of the call being encoded. False when there is none.
  bool Take(void* host, size_t bytes, uint64_t* address);
  // Waits for the stream and hands out what was taken since the last time.
  CUresult Deliver(const Stream& stream);
  void Drop() { taken_.clear(); }
  bool empty() const { return taken_.empty(); }

 private:
  struct Result {
    void* host;
    size_t bytes;
    uint64_t address;
  };
  std::vector<Result> taken_;
};

}  // namespace shim

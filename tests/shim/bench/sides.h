// The two sides of a benchmark: this process as a client, and a worker process that does nothing
// but move memory. Thread safety: once per process.
#pragma once

#include "ipc/calls/vendor.h"

#include <sys/types.h>

#include <string>

#include "ipc/session_file.h"

namespace bench {

// Says what failed and ends the process.
[[noreturn]] void Fail(const char* what);
inline void Check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) Fail(what);
}
#define CHECK_CALL(call) ::bench::Check(call, #call)

struct Sides {
  pid_t worker = 0;
  ipc::SessionPage* page = nullptr;
};

// Starts the worker and makes this process its client; over ZeroMQ when there is an endpoint.
Sides Connect(const std::string& endpoint);
void Disconnect(const Sides& sides);

}  // namespace bench

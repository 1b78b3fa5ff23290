// What the driver keeps for each application thread: its stack of current contexts and the call it
// is in.
//
// Made on first use and freed when the thread ends; usable again after that (a destructor that runs
// later may still call the driver), so nothing here is a C++ thread_local with a destructor.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

namespace softgpu {

class Context;

struct ThreadState {
  static ThreadState& Get();

  std::vector<std::shared_ptr<Context>> contexts;  // the last one is current; entries may be null
  const char* call = nullptr;                      // the exported name of the call in progress
  bool per_thread_default = false;  // stream 0 means the per-thread stream in this call
  bool in_callback = false;         // a host function runs on this thread: no CUDA calls
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::vector<CUgraphNode> capture_nodes;  // what cuStreamGetCaptureInfo pointed to last
  uint64_t id = 0;                         // never reused: names this thread's default streams
};

}  // namespace softgpu

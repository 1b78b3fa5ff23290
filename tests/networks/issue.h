// Issues a network's operators through the driver, each as one launch on its assigned stream.
//
// Streams begin behind the first stream and the first stream ends behind all, with events on the
// edges that the assignment leaves. The events around tell how long the operators take. A failed
// driver call ends the program with one sentence. Thread safety: one thread.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "scheduler/streams/assignment.h"
#include "tests/scheduler/streams/networks.h"

namespace networks {

// Exits with a sentence that names `call` when `result` is a failure.
void Need(CUresult result, const char* call);

// The name and the grid of operator `node` as a kernel, for launches and for the table of times.
std::string KernelName(const std::string& network, size_t node);
unsigned BlocksOf(const scheduler::streams::Operator& each);

class Issuer {
 public:
  // Loads a module with a kernel without content for each operator. REQUIRES: a current context.
  Issuer(const std::string& network, const std::vector<scheduler::streams::Operator>& operators);
  ~Issuer();
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  // Microseconds from the first operator to the last, by events: as calls on streams, or as one
  // launch of the graph that the same calls are captured as.
  double OnStreams(const scheduler::streams::Assignment& assignment);
  double AsGraph(const scheduler::streams::Assignment& assignment);

 private:
  void Issue(const scheduler::streams::Assignment& assignment);
  double Elapsed();

  std::vector<unsigned> blocks_;  // by operator
  CUmodule module_ = nullptr;
  std::vector<CUfunction> kernels_;
  std::vector<CUstream> streams_;  // as many as any assignment wanted
  std::vector<CUevent> ends_;      // by operator
  std::vector<CUevent> joins_;     // by stream
  CUevent fork_ = nullptr, begin_ = nullptr, end_ = nullptr;
};

}  // namespace networks

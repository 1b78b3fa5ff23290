#include "tests/networks/issue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace networks {

using scheduler::streams::Assignment;
using scheduler::streams::At;
using scheduler::streams::NodeId;
using scheduler::streams::Operator;

#define NEED(call) Need(call, #call)

void Need(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", call, name != nullptr ? name : "an unknown error");
  std::exit(1);
}

std::string KernelName(const std::string& network, size_t node) {
  return network + "_" + std::to_string(node);
}

unsigned BlocksOf(const Operator& each) {
  return static_cast<unsigned>(scheduler::streams::WorkOf(each).blocks);
}

Issuer::Issuer(const std::string& network, const std::vector<Operator>& operators) {
  std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (size_t node = 0; node < operators.size(); ++node) {
    ptx += ".visible .entry " + KernelName(network, node) + "()\n{\n  ret;\n}\n";
  }
  NEED(cuModuleLoadData(&module_, ptx.c_str()));
  kernels_.resize(operators.size());
  ends_.resize(operators.size());
  for (size_t node = 0; node < operators.size(); ++node) {
    blocks_.push_back(BlocksOf(operators[node]));
    NEED(cuModuleGetFunction(&kernels_[node], module_, KernelName(network, node).c_str()));
    NEED(cuEventCreate(&ends_[node], CU_EVENT_DISABLE_TIMING));
  }
  NEED(cuEventCreate(&fork_, CU_EVENT_DISABLE_TIMING));
  NEED(cuEventCreate(&begin_, CU_EVENT_DEFAULT));
  NEED(cuEventCreate(&end_, CU_EVENT_DEFAULT));
}

Issuer::~Issuer() {
  for (const CUstream stream : streams_) cuStreamDestroy(stream);
  for (const CUevent event : ends_) cuEventDestroy(event);
  for (const CUevent event : joins_) cuEventDestroy(event);
  for (const CUevent event : {fork_, begin_, end_}) cuEventDestroy(event);
  cuModuleUnload(module_);
}

void Issuer::Issue(const Assignment& assignment) {
  const size_t streams = static_cast<size_t>(assignment.streams);
  std::vector<bool> awaited(kernels_.size());
  for (const std::vector<NodeId>& waits : assignment.waits) {
    for (const NodeId other : waits) awaited[At(other)] = true;
  }
  NEED(cuEventRecord(fork_, streams_[0]));
  for (size_t i = 1; i < streams; ++i) NEED(cuStreamWaitEvent(streams_[i], fork_, 0));
  for (const NodeId node : assignment.order) {
    const CUstream stream = streams_[static_cast<size_t>(assignment.stream[At(node)])];
    for (const NodeId other : assignment.waits[At(node)]) {
      NEED(cuStreamWaitEvent(stream, ends_[At(other)], 0));
    }
    NEED(cuLaunchKernel(kernels_[At(node)], blocks_[At(node)], 1, 1, 256, 1, 1, 0, stream, nullptr,
                        nullptr));
    if (awaited[At(node)]) NEED(cuEventRecord(ends_[At(node)], stream));
  }
  for (size_t i = 1; i < streams; ++i) {
    NEED(cuEventRecord(joins_[i], streams_[i]));
    NEED(cuStreamWaitEvent(streams_[0], joins_[i], 0));
  }
}

double Issuer::Elapsed() {
  NEED(cuEventRecord(end_, streams_[0]));
  NEED(cuStreamSynchronize(streams_[0]));
  float milliseconds = 0;
  NEED(cuEventElapsedTime(&milliseconds, begin_, end_));
  return static_cast<double>(milliseconds) * 1e3;
}

double Issuer::OnStreams(const Assignment& assignment) {
  while (streams_.size() < static_cast<size_t>(assignment.streams)) {
    NEED(cuStreamCreate(&streams_.emplace_back(), CU_STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&joins_.emplace_back(), CU_EVENT_DISABLE_TIMING));
  }
  NEED(cuEventRecord(begin_, streams_[0]));
  Issue(assignment);
  return Elapsed();
}

double Issuer::AsGraph(const Assignment& assignment) {
  OnStreams(assignment);  // makes the streams
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  NEED(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  Issue(assignment);
  NEED(cuStreamEndCapture(streams_[0], &graph));
  NEED(cuGraphInstantiate(&exec, graph, 0));
  NEED(cuEventRecord(begin_, streams_[0]));
  NEED(cuGraphLaunch(exec, streams_[0]));
  const double elapsed_us = Elapsed();
  NEED(cuGraphExecDestroy(exec));
  NEED(cuGraphDestroy(graph));
  return elapsed_us;
}

}  // namespace networks

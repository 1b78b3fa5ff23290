// The beginning, and how programs ask for entry points.
#include <cstring>
#include <string>

#include "ipc/calls/proc_address.h"
#include "shim/inprocess/next_driver.h"
#include "shim/inprocess/own.h"
#include "shim/inprocess/process.h"

namespace shim::inprocess::own {
namespace {

// What the driver has given out for `symbol`, or ours where we stand before it. A newer entry point
// than our table knows passes: its parameters may be others.
void Replace(const char* symbol, int version, cuuint64_t flags, void** function) {
  if (*function == nullptr || version > CUDA_VERSION) return;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const ipc::Entry entry = ipc::FindEntry(symbol, version, per_thread);
  if (entry.status != ipc::EntryStatus::kFound) return;
  bool passes = true;
  void* const ours = EntryAddress(entry.symbol.data(), &passes);
  if (ours != nullptr && !passes) *function = ours;
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  if (Next().cuInit == nullptr) return CUDA_ERROR_NO_DEVICE;
  const CUresult result = Next().cuInit(flags);
  return result == CUDA_SUCCESS ? Process::Begin() : result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (Next().cuGetProcAddress_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = Next().cuGetProcAddress_v2(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) Replace(symbol, version, flags, function);
  return result;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (Next().cuGetProcAddress == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = Next().cuGetProcAddress(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) Replace(symbol, version, flags, function);
  return result;
}

// --- contexts that end ---------------------------------------------------------------------------

namespace {

template <class... A>
CUresult EndContext(CUresult (*next)(A...), A... a) {
  if (next == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (Process* const process = Process::Get()) process->ForgetContexts();
  return next(a...);
}

}  // namespace

CUresult cuCtxDestroy(CUcontext context) { return EndContext(Next().cuCtxDestroy, context); }
CUresult cuCtxDestroy_v2(CUcontext context) { return EndContext(Next().cuCtxDestroy_v2, context); }
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return EndContext(Next().cuDevicePrimaryCtxRelease, device);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return EndContext(Next().cuDevicePrimaryCtxRelease_v2, device);
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return EndContext(Next().cuDevicePrimaryCtxReset, device);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return EndContext(Next().cuDevicePrimaryCtxReset_v2, device);
}

// --- captures ------------------------------------------------------------------------------------

namespace {

template <class... A>
CUresult BeginCapture(CUresult (*next)(A...), A... a) {
  if (next == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = next(a...);
  Process* const process = Process::Get();
  if (result == CUDA_SUCCESS && process != nullptr) process->BeginCapture();
  return result;
}

CUresult EndCapture(CUresult (*next)(CUstream, CUgraph*), CUstream stream, CUgraph* graph) {
  if (next == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = next(stream, graph);
  if (Process* const process = Process::Get()) process->EndCapture();
  return result;
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) {
  return BeginCapture(Next().cuStreamBeginCapture, stream);
}
CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return BeginCapture(Next().cuStreamBeginCapture_ptsz, stream);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return BeginCapture(Next().cuStreamBeginCapture_v2, stream, mode);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return BeginCapture(Next().cuStreamBeginCapture_v2_ptsz, stream, mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode) {
  return BeginCapture(Next().cuStreamBeginCaptureToGraph, stream, graph, nodes, edges, count, mode);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
  return BeginCapture(Next().cuStreamBeginCaptureToGraph_ptsz, stream, graph, nodes, edges, count,
                      mode);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return EndCapture(Next().cuStreamEndCapture, stream, graph);
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return EndCapture(Next().cuStreamEndCapture_ptsz, stream, graph);
}

}  // namespace shim::inprocess::own

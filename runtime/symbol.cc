// Device variables by the address of their host shadow.
#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/registration.h"

namespace runtime {
namespace {

// The range [offset, offset + bytes) of a variable.
cudaError_t Range(const void* symbol, size_t offset, size_t bytes, void** address) {
  Variable* const variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  if (offset > variable->bytes() || bytes > variable->bytes() - offset)
    return cudaErrorInvalidValue;
  CUdeviceptr start = 0;
  const cudaError_t error = variable->Address(&start);
  if (error == cudaSuccess) *address = reinterpret_cast<void*>(start + offset);
  return error;
}

bool ToDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

bool FromDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

}  // namespace

namespace api {

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  if (address == nullptr) return cudaErrorInvalidValue;
  return Range(symbol, 0, 0, address);
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return cudaErrorInvalidValue;
  const Variable* const variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  *bytes = variable->bytes();
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  if (!ToDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* target = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &target);
  return error == cudaSuccess ? api::cudaMemcpy(target, source, bytes, kind) : error;
}

cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  if (!FromDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* source = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &source);
  return error == cudaSuccess ? api::cudaMemcpy(target, source, bytes, kind) : error;
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!ToDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* target = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &target);
  return error == cudaSuccess ? api::cudaMemcpyAsync(target, source, bytes, kind, stream) : error;
}

cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  if (!FromDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* source = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &source);
  return error == cudaSuccess ? api::cudaMemcpyAsync(target, source, bytes, kind, stream) : error;
}

// Copy nodes of graphs, by variable.

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const void* symbol, const void* source, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  void* target = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &target);
  if (error != cudaSuccess) return error;
  return api::cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, target, source, bytes,
                                       kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             void* target, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  void* source = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &source);
  if (error != cudaSuccess) return error;
  return api::cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, target, source, bytes,
                                       kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* source, size_t bytes, size_t offset,
                                                 cudaMemcpyKind kind) {
  void* target = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &target);
  if (error != cudaSuccess) return error;
  return api::cudaGraphMemcpyNodeSetParams1D(node, target, source, bytes, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* target,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind kind) {
  void* source = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &source);
  if (error != cudaSuccess) return error;
  return api::cudaGraphMemcpyNodeSetParams1D(node, target, source, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void* symbol, const void* source,
                                                     size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  void* target = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &target);
  if (error != cudaSuccess) return error;
  return api::cudaGraphExecMemcpyNodeSetParams1D(exec, node, target, source, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void* target, const void* symbol,
                                                       size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind) {
  void* source = nullptr;
  const cudaError_t error = Range(symbol, offset, bytes, &source);
  if (error != cudaSuccess) return error;
  return api::cudaGraphExecMemcpyNodeSetParams1D(exec, node, target, source, bytes, kind);
}

}  // namespace api
}  // namespace runtime

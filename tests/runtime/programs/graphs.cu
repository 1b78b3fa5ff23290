// Capture and explicit graphs. Exits with 77 where the driver has none.
#include "check.h"

__global__ void Add(int* value, int amount) { *value += amount; }

namespace {

int Read(const int* device) {
  int value = 0;
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

// `stream` is capturing.
void Captured(cudaStream_t stream, int* device) {
  Add<<<1, 1, 0, stream>>>(device, 1);
  Add<<<1, 1, 0, stream>>>(device, 10);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  EXPECT(Read(device) == 0);
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 2);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(Read(device) == 55);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

void Built(cudaStream_t stream, int* device) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  int amount = 3;
  void* args[] = {&device, &amount};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(&Add);
  params.gridDim = dim3(1);
  params.blockDim = dim3(1);
  params.kernelParams = args;
  cudaGraphNode_t add, fill;
  cudaMemsetParams zero = {};
  zero.dst = device;
  zero.elementSize = 4;
  zero.width = 1;
  zero.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero));
  CHECK(cudaGraphAddKernelNode(&add, graph, &fill, 1, &params));
  cudaKernelNodeParams back;
  CHECK(cudaGraphKernelNodeGetParams(add, &back));
  EXPECT(back.func == params.func);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(Read(device) == 3);
  amount = 8;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, add, &params));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(Read(device) == 8);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

}  // namespace

int main() {
  int* device;
  cudaStream_t stream;
  CHECK(cudaMalloc(&device, sizeof(int)));
  CHECK(cudaMemset(device, 0, sizeof(int)));
  CHECK(cudaStreamCreate(&stream));
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaErrorNotSupported) {
    std::puts("skipped: the driver has no graphs");
    return 77;
  }
  Captured(stream, device);
  Built(stream, device);
  std::puts("ok");
}

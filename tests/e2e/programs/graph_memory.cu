// Graphs allocate and free memory, by nodes and by capture. The program frees some of it after the
// launch, and some outlives its graph.
#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 100000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void Fill(int* values, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] = first + i % 7;
}

__global__ void Add(int* values, const int* more) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += more[i];
}

constexpr int kBlocks = (kCount + 255) / 256;

long long SumOf(const int* device) {
  std::vector<int> values(kCount);
  long long sum = 0;
  CUDA_CHECK(cudaMemcpy(values.data(), device, kBytes, cudaMemcpyDeviceToHost));
  for (const int value : values) sum += value;
  return sum;
}

// As PyTorch and CUB do: scratch memory in stream order, captured with its kernels.
void Captured(cudaStream_t stream) {
  int* result;
  CUDA_CHECK(cudaMalloc(&result, kBytes));
  CUDA_CHECK(cudaMemset(result, 0, kBytes));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int *one, *two;
  CUDA_CHECK(cudaMallocAsync(&one, kBytes, stream));
  Fill<<<kBlocks, 256, 0, stream>>>(one, 5);
  CUDA_CHECK(cudaMallocAsync(&two, kBytes, stream));
  CUDA_CHECK(cudaMemcpyAsync(two, one, kBytes, cudaMemcpyDeviceToDevice, stream));
  Add<<<kBlocks, 256, 0, stream>>>(two, one);
  // A stream that has joined again may go before the capture ends.
  cudaStream_t other;
  cudaEvent_t fork, join;
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreate(&fork));
  CUDA_CHECK(cudaEventCreate(&join));
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(other, fork, 0));
  CUDA_CHECK(cudaFreeAsync(one, other));
  CUDA_CHECK(cudaEventRecord(join, other));
  CUDA_CHECK(cudaStreamWaitEvent(stream, join, 0));
  CUDA_CHECK(cudaStreamDestroy(other));
  CUDA_CHECK(cudaEventDestroy(fork));
  CUDA_CHECK(cudaEventDestroy(join));
  Add<<<kBlocks, 256, 0, stream>>>(result, two);
  CUDA_CHECK(cudaFreeAsync(two, stream));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int round = 0; round < 4; ++round) {
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    printf("captured, %zu nodes, round %d: %lld\n", nodes, round, SumOf(result));
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaFree(result));
}

CUDA_MEM_ALLOC_NODE_PARAMS Wanted(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  params.bytesize = bytes;
  return params;
}

// What the graph allocates the program reads, and frees before the next launch.
void FreedByTheProgram(CUstream stream) {
  CUgraph graph;
  CUgraphExec executable;
  CUgraphNode allocate, fill;
  CHECK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = Wanted(kBytes);
  CHECK(cuGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &params));
  CUDA_MEMSET_NODE_PARAMS set = {params.dptr, 0, 7, 4, kCount, 1};
  CUcontext context;
  CHECK(cuCtxGetCurrent(&context));
  CHECK(cuGraphAddMemsetNode(&fill, graph, &allocate, 1, &set, context));
  CUDA_MEM_ALLOC_NODE_PARAMS told = {};
  CUgraphNodeType type;
  CHECK(cuGraphMemAllocNodeGetParams(allocate, &told));
  CHECK(cuGraphNodeGetType(allocate, &type));
  printf("node: type %d, %zu bytes, same address %d\n", type, told.bytesize,
         told.dptr == params.dptr);
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 3; ++round) {
    CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("the program's: %lld\n", SumOf(reinterpret_cast<int*>(params.dptr)));
    CHECK(cuMemFreeAsync(params.dptr, stream));
    CHECK(cuStreamSynchronize(stream));
  }
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(executable));
  CHECK(cuGraphDestroy(graph));
  printf("outlives its graph: %lld\n", SumOf(reinterpret_cast<int*>(params.dptr)));
  CHECK(cuMemFree(params.dptr));
}

// Allocated by one graph, freed by another.
void TwoGraphs(CUstream stream) {
  CUgraph first, second;
  CUgraphExec one, two;
  CUgraphNode node;
  CHECK(cuGraphCreate(&first, 0));
  CHECK(cuGraphCreate(&second, 0));
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps = Wanted(0).poolProps;
  params.alloc.bytesize = kBytes;
  CHECK(cuGraphAddNode(&node, first, nullptr, nullptr, 0, &params));
  const CUdeviceptr address = params.alloc.dptr;
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  params.free.dptr = address;
  CHECK(cuGraphAddNode(&node, second, nullptr, nullptr, 0, &params));
  CUdeviceptr told = 0;
  CHECK(cuGraphMemFreeNodeGetParams(node, &told));
  printf("freed by another: %d\n", told == address);
  CHECK(cuGraphInstantiate(&one, first, 0));
  CHECK(cuGraphInstantiate(&two, second, 0));
  for (int round = 0; round < 3; ++round) {
    CHECK(cuGraphLaunch(one, stream));
    CHECK(cuMemsetD32Async(address, round, kCount, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("between: %lld\n", SumOf(reinterpret_cast<int*>(address)));
    CHECK(cuGraphLaunch(two, stream));
    CHECK(cuStreamSynchronize(stream));
  }
  CHECK(cuGraphExecDestroy(one));
  CHECK(cuGraphExecDestroy(two));
  CHECK(cuGraphDestroy(first));
  CHECK(cuGraphDestroy(second));
}

void Refused(CUstream stream) {
  CUgraph graph;
  CUgraphNode node;
  CUdeviceptr plain;
  cuuint64_t used = 7;
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuMemAlloc(&plain, 4096));
  CUDA_MEM_ALLOC_NODE_PARAMS none = Wanted(0), elsewhere = Wanted(4096), shared = Wanted(4096);
  elsewhere.poolProps.location.id = 99;
  shared.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUDA_MEM_ALLOC_NODE_PARAMS huge = Wanted(size_t{1} << 45);
  printf("allocate: %d %d %d %d %d\n", cuGraphAddMemAllocNode(&node, graph, nullptr, 0, nullptr),
         cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &none),
         cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &elsewhere),
         cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &shared),
         cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &huge));
  printf("free: %d %d\n", cuGraphAddMemFreeNode(&node, graph, nullptr, 0, plain),
         cuGraphAddMemFreeNode(&node, graph, nullptr, 0, 0));
  CHECK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  CHECK(cuDeviceGraphMemTrim(0));
  printf("pool: %llu\n", static_cast<unsigned long long>(used));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  printf("in capture: %d\n", cuMemFreeAsync(plain, stream) != CUDA_SUCCESS);
  CUgraph captured = nullptr;
  printf("ended: %d\n", cuStreamEndCapture(stream, &captured));
  CHECK(cuMemFree(plain));
  CHECK(cuGraphDestroy(graph));
}

}  // namespace

int main() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Captured(stream);
  FreedByTheProgram(stream);
  TwoGraphs(stream);
  Refused(stream);
  CUDA_CHECK(cudaStreamDestroy(stream));
  return 0;
}

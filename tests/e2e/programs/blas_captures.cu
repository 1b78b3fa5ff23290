// cuBLAS in streams that capture: among kernels, on two streams, with settings that change after
// it, and what can't be captured. blas_captures: all of it; blas_captures COUNT MEMORY [step]:
// rounds of one graph, as rounds.cu.
#include <cublas_v2.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define BLAS_CHECK(call)                                               \
  do {                                                                 \
    const cublasStatus_t status = (call);                              \
    if (status != CUBLAS_STATUS_SUCCESS) {                             \
      fprintf(stderr, "line %d: %s: (%d)\n", __LINE__, #call, status); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

constexpr int kSize = 32;
constexpr int kCount = kSize * kSize;
constexpr size_t kBytes = kCount * sizeof(float);

__global__ void Clip(float* values, float most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] > most ? most - values[i] : values[i] + 0.125f;
}

struct Matrices {
  float *a, *b, *c;
};

static Matrices Make(bool pinned) {
  Matrices made;
  static float host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i * 37 % 101) / 101.0f;
  for (float** matrix : {&made.a, &made.b, &made.c}) {
    CUDA_CHECK(pinned ? cudaMallocHost(matrix, kBytes) : cudaMalloc(matrix, kBytes));
    CUDA_CHECK(cudaMemcpy(*matrix, host, kBytes, cudaMemcpyDefault));
  }
  return made;
}

static unsigned Hash(const float* matrix) {
  static unsigned words[kCount];
  unsigned hash = 2166136261u;
  CUDA_CHECK(cudaMemcpy(words, matrix, kBytes, cudaMemcpyDefault));
  for (const unsigned word : words) hash = (hash ^ word) * 16777619u;
  return hash;
}

static void Multiply(cublasHandle_t blas, const Matrices& on, float alpha) {
  const float beta = 0.5f;
  BLAS_CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, kSize, kSize, kSize, &alpha, on.a, kSize,
                         on.b, kSize, &beta, on.c, kSize));
}

// c = alpha a b' + c / 2, clipped, and once more into a; the scalars are gone when it is launched.
static cudaGraphExec_t Capture(cublasHandle_t blas, cudaStream_t stream, const Matrices& on) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  Multiply(blas, on, 0.25f);
  Clip<<<kCount / 256, 256, 0, stream>>>(on.c, 1.0f);
  const float third = 1.0f / 3;
  BLAS_CHECK(cublasSscal(blas, kCount, &third, on.c, 1));
  BLAS_CHECK(cublasSaxpy(blas, kCount, &third, on.c, 1, on.a, 1));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return exec;
}

static void Rounds(long rounds, bool pinned, bool step) {
  const Matrices on = Make(pinned);
  cudaStream_t stream;
  cublasHandle_t blas;
  CUDA_CHECK(cudaStreamCreate(&stream));
  BLAS_CHECK(cublasCreate(&blas));
  BLAS_CHECK(cublasSetStream(blas, stream));
  BLAS_CHECK(cublasSetMathMode(blas, CUBLAS_PEDANTIC_MATH));
  const cudaGraphExec_t exec = Capture(blas, stream, on);
  printf("started\n");
  fflush(stdout);
  for (long round = 0; round < rounds; ++round) {
    char byte;
    if (step && read(0, &byte, 1) < 0) exit(2);
    BLAS_CHECK(cublasSetMathMode(blas, CUBLAS_PEDANTIC_MATH));  // as it is: changes nothing
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    printf("round %ld: %08x\n", round, Hash(on.c));
    fflush(stdout);
  }
  printf("done\n");
}

// A second stream, with a handle of its own, joins the capture; both handles end before the
// launches.
static void TwoHandles() {
  const Matrices one = Make(false), other = Make(false);
  cudaStream_t streams[2];
  cublasHandle_t blas[2];
  cudaEvent_t fork, join;
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    BLAS_CHECK(cublasCreate(&blas[i]));
    BLAS_CHECK(cublasSetStream(blas[i], streams[i]));
  }
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
  Clip<<<kCount / 256, 256, 0, streams[0]>>>(one.a, 0.5f);
  CUDA_CHECK(cudaEventRecord(fork, streams[0]));
  CUDA_CHECK(cudaStreamWaitEvent(streams[1], fork, 0));
  Multiply(blas[0], one, 1.0f);
  Multiply(blas[1], other, 2.0f);
  CUDA_CHECK(cudaEventRecord(join, streams[1]));
  CUDA_CHECK(cudaStreamWaitEvent(streams[0], join, 0));
  const Matrices both = {one.c, other.c, one.b};
  Multiply(blas[0], both, 0.5f);
  CUDA_CHECK(cudaStreamEndCapture(streams[0], &graph));
  printf("nothing done: %08x %08x\n", Hash(one.c), Hash(other.c));
  BLAS_CHECK(cublasSetMathMode(blas[0], CUBLAS_TF32_TENSOR_OP_MATH));
  for (const cublasHandle_t handle : blas) BLAS_CHECK(cublasDestroy(handle));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaGraphLaunch(exec, streams[i % 2]));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("three launches: %08x %08x %08x\n", Hash(one.c), Hash(other.c), Hash(one.b));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
}

// What is outside a capture goes on meanwhile; a bad call fails and leaves the capture as it was.
static void Beside() {
  const Matrices on = Make(false), beside = Make(false);
  cudaStream_t stream, free;
  cublasHandle_t blas, other;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
  BLAS_CHECK(cublasCreate(&blas));
  BLAS_CHECK(cublasCreate(&other));
  BLAS_CHECK(cublasSetStream(blas, stream));
  BLAS_CHECK(cublasSetStream(other, free));
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  const float one = 1.0f;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  Multiply(other, beside, 1.0f);
  Multiply(blas, on, 1.0f);
  printf("a bad call: %d\n", (int)cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, -1, kSize, kSize,
                                              &one, on.a, kSize, on.b, kSize, &one, on.c, kSize));
  Multiply(other, beside, 1.0f);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaStreamSynchronize(free));
  printf("beside: %08x, captured: %08x\n", Hash(beside.c), Hash(on.c));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, stream));
  Multiply(blas, on, 1.0f);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  printf("launched and once more: %08x\n", Hash(on.c));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) {
  if (argc > 2) {
    Rounds(strtol(argv[1], nullptr, 10), strcmp(argv[2], "pinned") == 0, argc > 3);
    return 0;
  }
  TwoHandles();
  Beside();
  return 0;
}

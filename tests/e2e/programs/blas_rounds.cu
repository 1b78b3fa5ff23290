// Rounds of cuBLAS and of a kernel with a constant that the host has written, all set up once:
// blas_rounds COUNT MEMORY [step].
//
// What the handle was told (stream, math mode, pointer mode, atomics mode, workspace) and the
// constant must hold in every round. MEMORY is device or pinned: where the scalars lie. With `step`
// it waits for a byte on standard input before each round.
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
constexpr size_t kBytes = kSize * kSize * sizeof(float);

__constant__ float scales[4];

__global__ void Scale(float* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] *= scales[i % 4];
}

static unsigned Hash(const float* values, int count) {
  unsigned hash = 2166136261u;
  for (int i = 0; i < count; ++i) {
    unsigned word;
    memcpy(&word, &values[i], sizeof word);
    hash = (hash ^ word) * 16777619u;
  }
  return hash;
}

struct Scalars {
  float one, half, dot;
};

static void TellSettings(cublasHandle_t blas, cudaStream_t stream) {
  cudaStream_t on;
  cublasMath_t math;
  cublasPointerMode_t pointers;
  cublasAtomicsMode_t atomics;
  BLAS_CHECK(cublasGetStream(blas, &on));
  BLAS_CHECK(cublasGetMathMode(blas, &math));
  BLAS_CHECK(cublasGetPointerMode(blas, &pointers));
  BLAS_CHECK(cublasGetAtomicsMode(blas, &atomics));
  printf(" stream %d math %d pointers %d atomics %d\n", on == stream, math, pointers, atomics);
}

int main(int argc, char** argv) {
  const long rounds = strtol(argv[1], nullptr, 10);
  const bool pinned = strcmp(argv[2], "pinned") == 0, step = argc > 3;
  float *a, *b, *c, host[kSize * kSize];
  Scalars* scalars;
  void* workspace;
  cudaStream_t stream;
  cublasHandle_t blas;
  for (float** matrix : {&a, &b, &c}) CUDA_CHECK(cudaMalloc(matrix, kBytes));
  CUDA_CHECK(pinned ? cudaMallocHost(&scalars, sizeof *scalars)
                    : cudaMalloc(&scalars, sizeof *scalars));
  CUDA_CHECK(cudaMalloc(&workspace, 1 << 20));
  CUDA_CHECK(cudaStreamCreate(&stream));
  BLAS_CHECK(cublasCreate(&blas));
  BLAS_CHECK(cublasSetStream(blas, stream));
  BLAS_CHECK(cublasSetWorkspace(blas, workspace, 1 << 20));
  BLAS_CHECK(cublasSetMathMode(blas, CUBLAS_PEDANTIC_MATH));
  BLAS_CHECK(cublasSetAtomicsMode(blas, CUBLAS_ATOMICS_NOT_ALLOWED));
  BLAS_CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
  const float factors[4] = {0.5f, -0.25f, 0.75f, 1.0f};
  const Scalars first = {1.0f, 0.5f, 0.0f};
  for (int i = 0; i < kSize * kSize; ++i) host[i] = static_cast<float>(i * 37 % 101) / 101.0f;
  CUDA_CHECK(cudaMemcpyToSymbol(scales, factors, sizeof factors));
  CUDA_CHECK(cudaMemcpy(scalars, &first, sizeof first, cudaMemcpyDefault));
  for (float* const matrix : {a, b, c})
    CUDA_CHECK(cudaMemcpy(matrix, host, kBytes, cudaMemcpyDefault));
  printf("started\n");
  fflush(stdout);
  for (long round = 0; round < rounds; ++round) {
    char byte;
    if (step && read(0, &byte, 1) < 0) return 2;
    Scalars now;
    BLAS_CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, kSize, kSize, kSize, &scalars->half, a,
                           kSize, b, kSize, &scalars->half, c, kSize));
    Scale<<<kSize * kSize / 256, 256, 0, stream>>>(c);
    BLAS_CHECK(cublasSdot(blas, kSize * kSize, a, 1, c, 1, &scalars->dot));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaMemcpy(host, c, kBytes, cudaMemcpyDefault));
    CUDA_CHECK(cudaMemcpy(&now, scalars, sizeof now, cudaMemcpyDefault));
    printf("round %ld: %08x dot %08x", round, Hash(host, kSize * kSize), Hash(&now.dot, 1));
    TellSettings(blas, stream);
    fflush(stdout);
  }
  BLAS_CHECK(cublasDestroy(blas));
  CUDA_CHECK(cudaStreamDestroy(stream));
  printf("done\n");
  return 0;
}

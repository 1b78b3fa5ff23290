// cuBLAS of level 1 to 3 in its common variants: pointer modes, strided batches, mixed types.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include "check.h"

static void CheckCublas(cublasStatus_t status, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fprintf(stderr, "line %d: %s\n", line, cublasGetStatusString(status));
  exit(1);
}
#define CUBLAS_CHECK(call) CheckCublas((call), __LINE__)

constexpr int kSize = 24;
constexpr int kCount = kSize * kSize;

template <typename T>
static unsigned Hash(const T* device, int count) {
  T host[4 * kCount];
  unsigned hash = 2166136261u;
  CUDA_CHECK(cudaMemcpy(host, device, count * sizeof(T), cudaMemcpyDeviceToHost));
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(host);
  for (size_t i = 0; i < count * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static void Level1(cublasHandle_t cublas, float* x, float* y) {
  float alpha = 0.25f, dot = 0, norm = 0, sum = 0, *device_dot = nullptr;
  int largest = 0;
  CUBLAS_CHECK(cublasSaxpy(cublas, kCount, &alpha, x, 1, y, 1));
  CUBLAS_CHECK(cublasSdot(cublas, kCount, x, 1, y, 1, &dot));
  CUBLAS_CHECK(cublasSnrm2(cublas, kCount, x, 1, &norm));
  CUBLAS_CHECK(cublasSasum(cublas, kCount / 2, x, 2, &sum));
  CUBLAS_CHECK(cublasIsamax(cublas, kCount, x, 1, &largest));
  printf("level 1: dot %.9g, norm %.9g, sum %.9g, largest at %d\n", dot, norm, sum, largest);
  CUDA_CHECK(cudaMalloc(&device_dot, sizeof(float)));
  CUBLAS_CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_DEVICE));
  CUBLAS_CHECK(cublasSdot(cublas, kCount, x, 1, y, 1, device_dot));
  CUBLAS_CHECK(cublasSscal(cublas, kCount, device_dot, y, 1));
  CUBLAS_CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST));
  printf("level 1: scaled %08x\n", Hash(y, kCount));
  CUDA_CHECK(cudaFree(device_dot));
}

static void Level2And3(cublasHandle_t cublas, float* a, float* b, float* c) {
  const float alpha = 1.5f, beta = 0.5f;
  CUBLAS_CHECK(cublasSgemv(cublas, CUBLAS_OP_T, kSize, kSize, &alpha, a, kSize, b, 1, &beta, c, 1));
  printf("level 2: %08x\n", Hash(c, kSize));
  for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    CUBLAS_CHECK(cublasSgemm(cublas, op, CUBLAS_OP_N, kSize, kSize - 4, kSize, &alpha, a, kSize, b,
                             kSize, &beta, c, kSize));
    printf("level 3: %08x\n", Hash(c, kCount));
  }
  CUBLAS_CHECK(cublasSgemmStridedBatched(cublas, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &alpha, a, 8,
                                         64, b, 8, 64, &beta, c, 8, 64, 9));
  printf("strided batch: %08x\n", Hash(c, kCount));
}

__global__ void ToHalf(const float* from, __half* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = __float2half(from[i]);
}

static void Mixed(cublasHandle_t cublas, const float* a, const float* b, float* c) {
  __half *half_a, *half_b;
  const float alpha = 1, beta = 0;
  CUDA_CHECK(cudaMalloc(&half_a, kCount * sizeof(__half)));
  CUDA_CHECK(cudaMalloc(&half_b, kCount * sizeof(__half)));
  ToHalf<<<(kCount + 127) / 128, 128>>>(a, half_a, kCount);
  ToHalf<<<(kCount + 127) / 128, 128>>>(b, half_b, kCount);
  CUBLAS_CHECK(cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &alpha, half_a,
                            CUDA_R_16F, kSize, half_b, CUDA_R_16F, kSize, &beta, c, CUDA_R_32F,
                            kSize, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("half in, float out: %08x\n", Hash(c, kCount));
  CUDA_CHECK(cudaFree(half_a));
  CUDA_CHECK(cudaFree(half_b));
}

// What the library refuses is refused by the call itself, again and again, and harms nothing.
static void Refusals(cublasHandle_t cublas, const float* a, const float* b, float* c) {
  const float one = 1;
  for (int i = 0; i < 2; ++i) {
    for (const int rows : {-1, kSize}) {
      const cublasStatus_t status =
          cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, rows, kSize, kSize, &one, a, kSize - 1, b,
                      kSize, &one, c, kSize);
      printf("refused: %s\n", cublasGetStatusName(status));
    }
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

int main() {
  float host[kCount], *a, *b, *c;
  cublasHandle_t cublas;
  int version = 0, before = 0;
  CUBLAS_CHECK(cublasGetVersion(nullptr, &before));  // as XLA asks, before anything else
  CUBLAS_CHECK(cublasCreate(&cublas));
  CUBLAS_CHECK(cublasGetVersion(cublas, &version));
  printf("cuBLAS %d %s\n", version / 10000, version == before ? "as before" : "DIFFERS");
  for (float** buffer : {&a, &b, &c}) CUDA_CHECK(cudaMalloc(buffer, sizeof(host)));
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>((i * 37) % 101) / 101.0f - 0.5f;
  CUBLAS_CHECK(cublasSetMatrix(kSize, kSize, sizeof(float), host, kSize, a, kSize));
  CUBLAS_CHECK(cublasSetVector(kCount, sizeof(float), host, 1, b, 1));
  CUDA_CHECK(cudaMemset(c, 0, sizeof(host)));
  Level1(cublas, a, b);
  Level2And3(cublas, a, b, c);
  Mixed(cublas, a, b, c);
  Refusals(cublas, a, b, c);
  for (float* buffer : {a, b, c}) CUDA_CHECK(cudaFree(buffer));
  CUBLAS_CHECK(cublasDestroy(cublas));
  return 0;
}

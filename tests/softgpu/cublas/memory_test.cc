// Calls that reach memory which is not there: the stream faults with 700 before anything is
// computed, and the sentence names the call. What a call does not read need not be there. Each case
// is a process of its own, since a fault is the process's.
#include <cublasLt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/softgpu/cublas/device.h"

namespace softgpu::cublas {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr int64_t kFar = int64_t{1} << 30;

// Made in the child: memory for 64 x 64 floats each.
struct Given {
  cublasHandle_t handle = nullptr;
  float *a = nullptr, *b = nullptr, *c = nullptr;
};

using Call = std::function<cublasStatus_t(const Given&)>;

constexpr int kWell = 0, kFaulted = 1, kSilent = 2, kRefused = 3;

int EndOf(const Call& call) {
  const Device& device = Device::Get();
  Given given;
  if (cublasCreate(&given.handle) != CUBLAS_STATUS_SUCCESS) return 10;
  const size_t bytes = 64 * 64 * sizeof(float);
  given.a = static_cast<float*>(device.Allocate(bytes));
  given.b = static_cast<float*>(device.Allocate(bytes));
  given.c = static_cast<float*>(device.Allocate(bytes));
  const cublasStatus_t status = call(given);
  const CUresult result = device.Function<decltype(cuCtxSynchronize)>("cuCtxSynchronize")();
  if (result == CUDA_SUCCESS) return status == CUBLAS_STATUS_SUCCESS ? kWell : kRefused;
  CUstream stream = nullptr;
  const char* text = nullptr;
  device.Function<CUresult(CUstream*, const char**)>("softgpuGetFault")(&stream, &text);
  const bool said = std::string(text).find("cublas") == 0;
  return result == CUDA_ERROR_ILLEGAL_ADDRESS && said ? kFaulted : kSilent;
}

int InChild(const Call& call) {
  const pid_t child = fork();
  if (child == 0) _exit(EndOf(call));
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(MemoryTest, VectorsWithLargeSteps) {
  EXPECT_EQ(InChild([](const Given& g) { return cublasScopy_64(g.handle, 2, g.a, kFar, g.c, 1); }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) { return cublasScopy_64(g.handle, 2, g.a, 1, g.c, -kFar); }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) { return cublasSswap(g.handle, 1 << 24, g.a, 1, g.c, 1); }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) { return cublasScopy(g.handle, 4096, g.a, 1, g.c, -1); }),
            kWell);
}

TEST(MemoryTest, Reductions) {
  EXPECT_EQ(InChild([](const Given& g) {
              float result = 0;
              return cublasSasum_64(g.handle, 2, g.a, kFar, &result);
            }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              float result = 0;
              return cublasSasum_64(g.handle, 2, g.a, -kFar, &result);
            }),
            kWell);  // by its definition 0
}

TEST(MemoryTest, LeadingDimensions) {
  const auto gemm = [](const Given& g, int64_t lda, int64_t ldb, int64_t ldc) {
    return cublasSgemm_64(g.handle, CUBLAS_OP_N, CUBLAS_OP_T, 64, 64, 64, &kOne, g.a, lda, g.b, ldb,
                          &kZero, g.c, ldc);
  };
  EXPECT_EQ(InChild([&](const Given& g) { return gemm(g, 64, 64, 64); }), kWell);
  EXPECT_EQ(InChild([&](const Given& g) { return gemm(g, 1 << 22, 64, 64); }), kFaulted);
  EXPECT_EQ(InChild([&](const Given& g) { return gemm(g, 64, 1 << 22, 64); }), kFaulted);
  EXPECT_EQ(InChild([&](const Given& g) { return gemm(g, 64, 64, 1 << 22); }), kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasStrsv(g.handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT,
                                 64, g.a, 1 << 22, g.b, 1);
            }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgbmv(g.handle, CUBLAS_OP_N, 64, 64, 1, 1, &kOne, g.a, 1 << 22, g.b, 1,
                                 &kZero, g.c, 1);
            }),
            kFaulted);
}

TEST(MemoryTest, Batches) {
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgemmStridedBatched(g.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &kOne,
                                               g.a, 8, 64, g.b, 8, kFar, &kZero, g.c, 8, 64, 2);
            }),
            kFaulted);
  // Pointers in device memory are read when the call runs.
  const auto batched = [](const Given& g, float* second) {
    const Device& device = Device::Get();
    float* const pointers[2] = {g.a, second};
    void* const array = device.Allocate(sizeof pointers);
    device.CopyIn(array, pointers, sizeof pointers);
    float** const both = static_cast<float**>(array);
    return cublasSgemmBatched(g.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &kOne, both, 8, both, 8,
                              &kZero, both, 8, 2);
  };
  EXPECT_EQ(InChild([&](const Given& g) { return batched(g, g.b); }), kWell);
  EXPECT_EQ(InChild([&](const Given& g) { return batched(g, nullptr); }), kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              const Device& device = Device::Get();
              float** const array = static_cast<float**>(device.Allocate(sizeof(float*)));
              const int m[1] = {8}, ld[1] = {8}, sizes[1] = {1};
              const cublasOperation_t op[1] = {CUBLAS_OP_N};
              float* const far = g.a + kFar;
              device.CopyIn(array, &far, sizeof far);
              return cublasSgemmGroupedBatched(g.handle, op, op, m, m, m, &kOne, array, ld, array,
                                               ld, &kZero, array, ld, 1, sizes);
            }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgetrfBatched(g.handle, 8, reinterpret_cast<float* const*>(g.a + kFar),
                                         8, nullptr, reinterpret_cast<int*>(g.c), 1);
            }),
            kFaulted);
}

TEST(MemoryTest, ScalarsOnTheDevice) {
  EXPECT_EQ(InChild([](const Given& g) {
              cublasSetPointerMode(g.handle, CUBLAS_POINTER_MODE_DEVICE);
              return cublasSscal(g.handle, 8, g.b + kFar, g.a, 1);
            }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              cublasSetPointerMode(g.handle, CUBLAS_POINTER_MODE_DEVICE);
              return cublasSdot(g.handle, 8, g.a, 1, g.b, 1, g.c + kFar);
            }),
            kFaulted);
}

// What nobody reads may be anything.
TEST(MemoryTest, WhatIsNotReadNeedNotBeThere) {
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgeam(g.handle, CUBLAS_OP_T, CUBLAS_OP_N, 64, 64, &kOne, g.a, 64, &kZero,
                                 nullptr, 64, g.c, 64);
            }),
            kWell);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgeam(g.handle, CUBLAS_OP_T, CUBLAS_OP_N, 64, 64, &kOne, g.a, 64, &kOne,
                                 nullptr, 64, g.c, 64);
            }),
            kFaulted);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSgemm(g.handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 0, &kOne, nullptr, 64,
                                 nullptr, 64, &kZero, g.c, 64);
            }),
            kWell);
  EXPECT_EQ(InChild([](const Given& g) {
              return cublasSaxpy(g.handle, 64, &kZero, nullptr, 1, nullptr, 1);
            }),
            kWell);
}

// Columns in different allocations, with nothing between them.
TEST(MemoryTest, GapsBetweenColumns) {
  EXPECT_EQ(InChild([](const Given& g) {
              float* const low = std::min(g.a, g.b);
              float* const high = std::max(g.a, g.b);
              return cublasSgeam(g.handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 2, &kOne, low,
                                 static_cast<int>(high - low), &kZero, low, 64, g.c, 64);
            }),
            kWell);
}

cublasStatus_t LtMatmul(const Given& g, int64_t lda, const float* c, float beta) {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, square = nullptr;
  cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 64, 64, lda);
  cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 64, 64, 64);
  return cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(g.handle), desc, &kOne, g.a, a, g.b,
                        square, &beta, c, square, g.c, square, nullptr, nullptr, 0, nullptr);
}

TEST(MemoryTest, LayoutsOfCublasLt) {
  EXPECT_EQ(InChild([](const Given& g) { return LtMatmul(g, 64, g.c, 0); }), kWell);
  EXPECT_EQ(InChild([](const Given& g) { return LtMatmul(g, 1 << 22, g.c, 0); }), kFaulted);
  EXPECT_EQ(InChild([](const Given& g) { return LtMatmul(g, 64, nullptr, 0); }), kWell);
  EXPECT_EQ(InChild([](const Given& g) { return LtMatmul(g, 64, nullptr, 1); }), kFaulted);
}

}  // namespace
}  // namespace softgpu::cublas

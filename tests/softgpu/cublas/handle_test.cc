// Handles, settings, stream order, pointer modes, error statuses, copies between host and device.
#include <atomic>
#include <future>
#include <thread>

#include "tests/softgpu/cublas/device.h"

namespace softgpu::cublas {
namespace {

using HandleTest = CublasTest;

TEST_F(HandleTest, Versions) {
  int version = 0;
  ASSERT_EQ(cublasGetVersion(handle_, &version), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(version, CUBLAS_VERSION);
  int without_handle = 0;
  EXPECT_EQ(cublasGetVersion(nullptr, &without_handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(without_handle, version);
  EXPECT_EQ(cublasGetVersion(nullptr, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  int major = 0, minor = 0, patch = 0;
  EXPECT_EQ(cublasGetProperty(MAJOR_VERSION, &major), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetProperty(MINOR_VERSION, &minor), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetProperty(PATCH_LEVEL, &patch), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(major * 10000 + minor * 100 + patch, version);
  EXPECT_EQ(cublasGetProperty(MAJOR_VERSION, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGetCudartVersion(), static_cast<size_t>(CUDA_VERSION));
}

TEST_F(HandleTest, SettingsAreKept) {
  cublasMath_t math{};
  EXPECT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle_, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_TF32_TENSOR_OP_MATH);
  EXPECT_EQ(cublasSetMathMode(handle_, static_cast<cublasMath_t>(77)), CUBLAS_STATUS_INVALID_VALUE);

  cublasAtomicsMode_t atomics{};
  EXPECT_EQ(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_ALLOWED), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetAtomicsMode(handle_, &atomics), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(atomics, CUBLAS_ATOMICS_ALLOWED);

  cublasPointerMode_t mode{};
  EXPECT_EQ(cublasGetPointerMode(handle_, &mode), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(mode, CUBLAS_POINTER_MODE_HOST);
  EXPECT_EQ(cublasSetPointerMode(handle_, static_cast<cublasPointerMode_t>(9)),
            CUBLAS_STATUS_INVALID_VALUE);

  int count = -1;
  EXPECT_EQ(cublasSetSmCountTarget(handle_, 4), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetSmCountTarget(handle_, &count), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);

  const DeviceArray<char> workspace(std::vector<char>(4096));
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace.get(), 4096), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace.get() + 1, 4095), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(HandleTest, InvalidHandles) {
  float value = 0;
  EXPECT_EQ(cublasCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetStream(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSscal(nullptr, 1, &value, &value, 1), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(HandleTest, StatusNames) {
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_SUCCESS), "success");
  EXPECT_STREQ(cublasGetStatusName(static_cast<cublasStatus_t>(99)), "CUBLAS_STATUS_UNKNOWN");
}

TEST_F(HandleTest, WrongArgumentsSayInvalidValue) {
  const float one = 1;
  const DeviceArray<float> x(std::vector<float>(64));
  float* const p = x.get();
  const auto gemm = [&](cublasOperation_t op, int m, int lda, int ldc, const float* alpha) {
    return cublasSgemm(handle_, op, CUBLAS_OP_N, m, 4, 4, alpha, p, lda, p, 4, &one, p, ldc);
  };
  EXPECT_EQ(gemm(CUBLAS_OP_N, 4, 4, 4, &one), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(static_cast<cublasOperation_t>(7), 4, 4, 4, &one), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, -1, 4, 4, &one), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, 4, 3, 4, &one), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, 4, 4, 3, &one), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, 4, 4, 4, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, 0, 1, 1, &one), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSgemv(handle_, CUBLAS_OP_N, 4, 4, &one, p, 4, p, 0, &one, p, 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSsyrk(handle_, CUBLAS_FILL_MODE_FULL, CUBLAS_OP_N, 4, 4, &one, p, 4, &one, p, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasStrsm(handle_, static_cast<cublasSideMode_t>(5), CUBLAS_FILL_MODE_LOWER,
                        CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 4, 4, &one, p, 4, p, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSdot(handle_, 4, p, 1, p, 1, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSgemm_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, int64_t{1} << 40, 1, 1, &one, p,
                           int64_t{1} << 40, p, 1, &one, p, int64_t{1} << 40),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

// A stream that is held until the test lets it go on, so that order is seen without sleeping.
class HeldStream {
 public:
  HeldStream() : stream_(Device::Get().CreateStream()) {
    Device::Get().LaunchHost(stream_, &Wait, &gate_);
  }
  ~HeldStream() {
    Release();
    Device::Get().Synchronize();
    Device::Get().DestroyStream(stream_);
  }
  void Release() {
    if (!released_) gate_.set_value();
    released_ = true;
  }
  CUstream get() const { return stream_; }

 private:
  static void Wait(void* gate) { static_cast<std::promise<void>*>(gate)->get_future().wait(); }

  std::promise<void> gate_;
  bool released_ = false;
  CUstream stream_;
};

TEST_F(HandleTest, WorkRunsInStreamOrder) {
  const DeviceArray<float> x({1, 2, 3});
  HeldStream held;
  ASSERT_EQ(cublasSetStream(handle_, held.get()), CUBLAS_STATUS_SUCCESS);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cublasGetStream(handle_, &stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stream, held.get());
  const float factor = 2;
  ASSERT_EQ(cublasSscal(handle_, 3, &factor, x.get(), 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSscal(handle_, 3, &factor, x.get(), 1), CUBLAS_STATUS_SUCCESS);
  std::vector<float> early(3);
  std::memcpy(early.data(), x.get(), sizeof(float) * 3);  // a device address is plain memory
  EXPECT_EQ(early, (std::vector<float>{1, 2, 3}));
  held.Release();
  EXPECT_EQ(x.Read(), (std::vector<float>{4, 8, 12}));
}

TEST_F(HandleTest, HostScalarsAreReadAtTheCall) {
  const DeviceArray<float> x({1, 2});
  HeldStream held;
  ASSERT_EQ(cublasSetStream(handle_, held.get()), CUBLAS_STATUS_SUCCESS);
  float factor = 2;
  ASSERT_EQ(cublasSscal(handle_, 2, &factor, x.get(), 1), CUBLAS_STATUS_SUCCESS);
  factor = 100;
  held.Release();
  EXPECT_EQ(x.Read(), (std::vector<float>{2, 4}));
}

TEST_F(HandleTest, DeviceScalarsAreReadWhenTheWorkRuns) {
  const DeviceArray<float> x({1, 2}), result({0, 0});
  DeviceArray<float> factor({2});
  HeldStream held;
  ASSERT_EQ(cublasSetStream(handle_, held.get()), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSscal(handle_, 2, factor.get(), x.get(), 1), CUBLAS_STATUS_SUCCESS);
  // Returns at once in this mode, with the stream held.
  ASSERT_EQ(cublasSdot(handle_, 2, x.get(), 1, x.get(), 1, result.get()), CUBLAS_STATUS_SUCCESS);
  *factor.get() = 10;
  held.Release();
  EXPECT_EQ(x.Read(), (std::vector<float>{10, 20}));
  EXPECT_EQ(result.Read(), (std::vector<float>{500, 0}));
}

TEST_F(HandleTest, HostResultsWaitForTheStream) {
  const DeviceArray<float> x({3, 4});
  HeldStream held;
  ASSERT_EQ(cublasSetStream(handle_, held.get()), CUBLAS_STATUS_SUCCESS);
  const float factor = 2;
  ASSERT_EQ(cublasSscal(handle_, 2, &factor, x.get(), 1), CUBLAS_STATUS_SUCCESS);
  std::thread releaser([&] { held.Release(); });
  float norm = 0;
  ASSERT_EQ(cublasSnrm2(handle_, 2, x.get(), 1, &norm), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(norm, 10);
  releaser.join();
}

TEST_F(HandleTest, ADestroyedHandleLeavesItsWorkQueued) {
  const DeviceArray<float> x({1});
  HeldStream held;
  cublasHandle_t other = nullptr;
  ASSERT_EQ(cublasCreate(&other), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(other, held.get()), CUBLAS_STATUS_SUCCESS);
  const float factor = 5;
  ASSERT_EQ(cublasSscal(other, 1, &factor, x.get(), 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasDestroy(other), CUBLAS_STATUS_SUCCESS);
  held.Release();
  EXPECT_EQ(x.Read(), (std::vector<float>{5}));
}

// Streams of their own, handles of their own, at once.
TEST_F(HandleTest, ManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  const auto work = [&] {
    cublasHandle_t handle = nullptr;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return;
    const CUstream stream = Device::Get().CreateStream();
    cublasSetStream(handle, stream);
    const DeviceArray<double> a(std::vector<double>(64 * 64, 1)), c(std::vector<double>(64 * 64));
    const double one = 1;
    for (int i = 0; i < 10; ++i) {
      cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 64, 64, 64, &one, a.get(), 64, a.get(), 64,
                  &one, c.get(), 64);
    }
    right += c.Read() == std::vector<double>(64 * 64, 640) ? 1 : 0;
    cublasDestroy(handle);
    Device::Get().DestroyStream(stream);
  };
  for (int i = 0; i < 16; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 16);
}

using TransferTest = CublasTest;

TEST_F(TransferTest, StridedVectors) {
  const std::vector<float> host = {1, 2, 3, 4, 5, 6};
  const DeviceArray<float> device(std::vector<float>(9, -1));
  ASSERT_EQ(cublasSetVector(3, sizeof(float), host.data(), 2, device.get(), 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(device.Read(), (std::vector<float>{1, -1, -1, 3, -1, -1, 5, -1, -1}));
  std::vector<float> back(3);
  ASSERT_EQ(cublasGetVector(3, sizeof(float), device.get(), 3, back.data(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(cublasGetVector(3, sizeof(float), device.get(), 0, back.data(), 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetVector(0, sizeof(float), host.data(), 1, device.get(), 1),
            CUBLAS_STATUS_SUCCESS);
}

TEST_F(TransferTest, PartsOfMatrices) {
  const std::vector<double> host = {1, 2, 3, 4, 5, 6};  // 2 x 2 of a matrix with ld 3
  const DeviceArray<double> device(std::vector<double>(8, -1));
  ASSERT_EQ(cublasSetMatrix(2, 2, sizeof(double), host.data(), 3, device.get(), 4),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(device.Read(), (std::vector<double>{1, 2, -1, -1, 4, 5, -1, -1}));
  const CUstream stream = Device::Get().CreateStream();
  std::vector<double> back(4);
  ASSERT_EQ(cublasGetMatrixAsync(2, 2, sizeof(double), device.get(), 4, back.data(), 2, stream),
            CUBLAS_STATUS_SUCCESS);
  Device::Get().Synchronize();
  EXPECT_EQ(back, (std::vector<double>{1, 2, 4, 5}));
  Device::Get().DestroyStream(stream);
  EXPECT_EQ(cublasSetMatrix(4, 2, sizeof(double), host.data(), 3, device.get(), 4),
            CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
}  // namespace softgpu::cublas

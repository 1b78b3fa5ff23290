// cublasLt: products against brute force in both orders, epilogues, batches, transforms,
// descriptors.
#include <cublasLt.h>

#include <cmath>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"

namespace softgpu::cublas {
namespace {

constexpr auto kOk = CUBLAS_STATUS_SUCCESS;

class LtTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Device::Get();
    ASSERT_EQ(cublasLtCreate(&handle_), kOk);
  }
  void TearDown() override { EXPECT_EQ(cublasLtDestroy(handle_), kOk); }

  cublasLtHandle_t handle_ = nullptr;
  Random random_;
};

// A stored matrix in one of the two orders, with padding.
template <class T>
struct Stored {
  Stored(Random& random, int64_t rows, int64_t columns, cublasLtOrder_t order, int batch = 1)
      : rows(rows), columns(columns), order(order), batch(batch) {
    const bool row = order == CUBLASLT_ORDER_ROW;
    ld = (row ? columns : rows) + random.Between(0, 3);
    stride = ld * (row ? rows : columns) + random.Between(0, 5);
    data = random.Numbers<T>(stride * batch);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, kDataType<T>, rows, columns, ld), kOk);
    const int32_t order_value = order;
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order_value,
                                               sizeof(order_value)),
              kOk);
    const int32_t count = batch;
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof(count)),
              kOk);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof(stride)),
              kOk);
  }
  ~Stored() { cublasLtMatrixLayoutDestroy(layout); }
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  T& At(int64_t element, int64_t i, int64_t j) {
    return data[element * stride + (order == CUBLASLT_ORDER_ROW ? i * ld + j : i + j * ld)];
  }

  int64_t rows, columns, ld, stride;
  cublasLtOrder_t order;
  int batch;
  std::vector<T> data;
  cublasLtMatrixLayout_t layout = nullptr;
};

class MatmulDescriptor {
 public:
  MatmulDescriptor(cublasComputeType_t compute, cudaDataType scale) {
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc_, compute, scale), kOk);
  }
  ~MatmulDescriptor() { cublasLtMatmulDescDestroy(desc_); }
  template <class T>
  void Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)), kOk);
  }
  cublasLtMatmulDesc_t get() const { return desc_; }

 private:
  cublasLtMatmulDesc_t desc_ = nullptr;
};

template <class E, class T>
std::vector<E> Widen(const std::vector<T>& values) {
  std::vector<E> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = ElementFrom<E>(values[i]);
  return result;
}

// Random shapes, operations, orders, batches; bias and ReLU. T in and out, E in between.
template <class T, class E>
void CheckMatmul(cublasLtHandle_t handle, Random& random, cublasComputeType_t compute,
                 cudaDataType scale, bool with_epilogue) {
  const cublasOperation_t op_a = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T});
  const cublasOperation_t op_b = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T});
  const auto order = [&] { return random.Pick({CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW}); };
  const int64_t m = random.Between(1, 20), n = random.Between(1, 20), k = random.Between(1, 20);
  const int batch = static_cast<int>(random.Between(1, 3));
  const bool a_normal = op_a == CUBLAS_OP_N, b_normal = op_b == CUBLAS_OP_N;
  Stored<T> a(random, a_normal ? m : k, a_normal ? k : m, order(), batch);
  Stored<T> b(random, b_normal ? k : n, b_normal ? n : k, order(), batch);
  Stored<T> c(random, m, n, order(), batch), d(random, m, n, c.order, batch);
  const std::vector<T> bias = random.Numbers<T>(m);
  const E alpha = random.Number<E>(), beta = random.Number<E>();
  const DeviceArray<T> da(a.data), db(b.data), dc(c.data), dd(d.data), dbias(bias);

  MatmulDescriptor desc(compute, scale);
  desc.Set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(op_a));
  desc.Set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(op_b));
  if (with_epilogue) {
    desc.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_RELU_BIAS));
    desc.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(dbias.get()));
  }
  ASSERT_EQ(
      cublasLtMatmul(handle, desc.get(), &alpha, da.get(), a.layout, db.get(), b.layout, &beta,
                     dc.get(), c.layout, dd.get(), d.layout, nullptr, nullptr, 0, nullptr),
      kOk);
  for (int e = 0; e < batch; ++e) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        E sum{};
        for (int64_t p = 0; p < k; ++p) {
          sum += ElementFrom<E>(a_normal ? a.At(e, i, p) : a.At(e, p, i)) *
                 ElementFrom<E>(b_normal ? b.At(e, p, j) : b.At(e, j, p));
        }
        E value = alpha * sum + beta * ElementFrom<E>(c.At(e, i, j));
        if constexpr (!kIsComplex<E>) {
          if (with_epilogue) value = std::max(E(0), value + ElementFrom<E>(bias[i]));
        }
        d.At(e, i, j) = ElementTo<T>(value);
      }
    }
  }
  ASSERT_EQ(Widen<E>(dd.Read()), Widen<E>(d.data));
}

TEST_F(LtTest, FloatInBothOrdersWithBiasAndRelu) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 60; ++round) {
    CheckMatmul<float, float>(handle_, random_, CUBLAS_COMPUTE_32F, CUDA_R_32F, round % 2 == 1);
  }
}
TEST_F(LtTest, Double) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 30; ++round) {
    CheckMatmul<double, double>(handle_, random_, CUBLAS_COMPUTE_64F, CUDA_R_64F, round % 2 == 1);
  }
}
TEST_F(LtTest, Half) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 30; ++round) {
    CheckMatmul<Half, float>(handle_, random_, CUBLAS_COMPUTE_32F, CUDA_R_32F, round % 2 == 1);
  }
}
TEST_F(LtTest, Bfloat16) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 30; ++round) {
    CheckMatmul<Bfloat16, float>(handle_, random_, CUBLAS_COMPUTE_32F, CUDA_R_32F, round % 2 == 1);
  }
}
TEST_F(LtTest, Complex) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 30; ++round) {
    CheckMatmul<Complex64, Complex64>(handle_, random_, CUBLAS_COMPUTE_32F, CUDA_C_32F, false);
  }
}

TEST_F(LtTest, GeluIsItsTanhForm) {
  Stored<float> a(random_, 4, 1, CUBLASLT_ORDER_COL), b(random_, 1, 1, CUBLASLT_ORDER_COL);
  Stored<float> d(random_, 4, 1, CUBLASLT_ORDER_COL);
  a.data = {-2, -0.5f, 0, 3};
  a.data.resize(a.stride);
  b.data[0] = 1;
  const DeviceArray<float> da(a.data), db(b.data), dd(d.data);
  MatmulDescriptor desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  desc.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_GELU));
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasLtMatmul(handle_, desc.get(), &one, da.get(), a.layout, db.get(), b.layout, &zero,
                           nullptr, d.layout, dd.get(), d.layout, nullptr, nullptr, 0, nullptr),
            kOk);
  const std::vector<float> result = dd.Read();
  for (int i = 0; i < 4; ++i) {
    const double x = a.data[i];
    const double expected =
        0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    EXPECT_NEAR(result[i], expected, 1e-6);
  }
}

TEST_F(LtTest, HeuristicGivesTheAlgorithmThatMatmulTakes) {
  Stored<float> a(random_, 3, 2, CUBLASLT_ORDER_COL), b(random_, 2, 4, CUBLASLT_ORDER_COL);
  Stored<float> d(random_, 3, 4, CUBLASLT_ORDER_COL);
  const DeviceArray<float> da(a.data), db(b.data), dd(d.data);
  MatmulDescriptor desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), kOk);
  const uint64_t bytes = 1 << 20;
  EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
            kOk);
  cublasLtMatmulHeuristicResult_t results[4];
  int count = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, desc.get(), a.layout, b.layout, d.layout,
                                           d.layout, preference, 4, results, &count),
            kOk);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(results[0].state, kOk);
  EXPECT_EQ(results[0].workspaceSize, 0u);
  const float one = 1, zero = 0;
  EXPECT_EQ(
      cublasLtMatmul(handle_, desc.get(), &one, da.get(), a.layout, db.get(), b.layout, &zero,
                     dd.get(), d.layout, dd.get(), d.layout, &results[0].algo, nullptr, 0, nullptr),
      kOk);
  cublasLtMatmulHeuristicResult_t checked;
  EXPECT_EQ(cublasLtMatmulAlgoCheck(handle_, desc.get(), a.layout, b.layout, d.layout, d.layout,
                                    &results[0].algo, &checked),
            kOk);
  int32_t id = -1;
  size_t written = 0;
  EXPECT_EQ(cublasLtMatmulAlgoConfigGetAttribute(&results[0].algo, CUBLASLT_ALGO_CONFIG_ID, &id,
                                                 sizeof(id), &written),
            kOk);
  EXPECT_EQ(id, 0);
  cublasLtMatmulAlgo_t foreign = {};
  EXPECT_EQ(cublasLtMatmul(handle_, desc.get(), &one, da.get(), a.layout, db.get(), b.layout, &zero,
                           dd.get(), d.layout, dd.get(), d.layout, &foreign, nullptr, 0, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulPreferenceDestroy(preference);
}

TEST_F(LtTest, RefusalsAndContradictions) {
  Stored<float> a(random_, 3, 2, CUBLASLT_ORDER_COL), b(random_, 2, 4, CUBLASLT_ORDER_COL);
  Stored<float> d(random_, 3, 4, CUBLASLT_ORDER_COL), wrong(random_, 4, 4, CUBLASLT_ORDER_COL);
  const DeviceArray<float> da(a.data), db(b.data), dd(d.data);
  const float one = 1, zero = 0;
  const auto run = [&](cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t result) {
    return cublasLtMatmul(handle_, desc, &one, da.get(), a.layout, db.get(), b.layout, &zero,
                          dd.get(), result, dd.get(), result, nullptr, nullptr, 0, nullptr);
  };
  MatmulDescriptor desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  EXPECT_EQ(run(desc.get(), d.layout), kOk);
  EXPECT_EQ(run(desc.get(), wrong.layout), CUBLAS_STATUS_INVALID_VALUE);
  desc.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS));
  EXPECT_EQ(run(desc.get(), d.layout), CUBLAS_STATUS_INVALID_VALUE);  // without a bias
  desc.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_DGELU));
  EXPECT_EQ(run(desc.get(), d.layout), CUBLAS_STATUS_NOT_SUPPORTED);
  MatmulDescriptor other(CUBLAS_COMPUTE_64F, CUDA_R_64F);
  EXPECT_EQ(run(other.get(), d.layout), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(run(nullptr, d.layout), CUBLAS_STATUS_INVALID_VALUE);
  const int32_t tiled = CUBLASLT_ORDER_COL32;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(d.layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &tiled,
                                             sizeof(tiled)),
            kOk);
  EXPECT_EQ(run(MatmulDescriptor(CUBLAS_COMPUTE_32F, CUDA_R_32F).get(), d.layout),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(LtTest, AttributesHaveSizes) {
  cublasLtMatrixLayoutOpaque_t own;  // in the program's memory
  ASSERT_EQ(cublasLtMatrixLayoutInit(&own, CUDA_R_16F, 5, 6, 7), kOk);
  uint64_t rows = 0;
  size_t written = 0;
  EXPECT_EQ(
      cublasLtMatrixLayoutGetAttribute(&own, CUBLASLT_MATRIX_LAYOUT_ROWS, nullptr, 0, &written),
      kOk);
  EXPECT_EQ(written, sizeof(rows));
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(&own, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof(rows),
                                             &written),
            kOk);
  EXPECT_EQ(rows, 5u);
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(&own, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 4, &written),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(&own, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(&own, static_cast<cublasLtMatrixLayoutAttribute_t>(99),
                                             &rows, 8),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(LtTest, ACublasHandleWillDo) {
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), kOk);
  CheckMatmul<float, float>(reinterpret_cast<cublasLtHandle_t>(handle), random_, CUBLAS_COMPUTE_32F,
                            CUDA_R_32F, false);
  EXPECT_EQ(cublasDestroy(handle), kOk);
}

TEST_F(LtTest, TransformsOrderAndType) {
  SCOPED_TRACE(random_.Describe());
  for (int round = 0; round < 20; ++round) {
    const int64_t m = random_.Between(1, 20), n = random_.Between(1, 20);
    Stored<Half> a(random_, n, m, random_.Pick({CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW}));
    Stored<float> b(random_, m, n, random_.Pick({CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW}));
    Stored<float> c(random_, m, n, random_.Pick({CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW}));
    const DeviceArray<Half> da(a.data);
    const DeviceArray<float> db(b.data), dc(c.data);
    cublasLtMatrixTransformDesc_t desc = nullptr;
    ASSERT_EQ(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F), kOk);
    const int32_t transpose = CUBLAS_OP_T;
    ASSERT_EQ(cublasLtMatrixTransformDescSetAttribute(desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA,
                                                      &transpose, sizeof(transpose)),
              kOk);
    const float alpha = random_.Number<float>(), beta = random_.Number<float>();
    ASSERT_EQ(cublasLtMatrixTransform(handle_, desc, &alpha, da.get(), a.layout, &beta, db.get(),
                                      b.layout, dc.get(), c.layout, nullptr),
              kOk);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        c.At(0, i, j) = alpha * ToFloat(a.At(0, j, i)) + beta * b.At(0, i, j);
      }
    }
    ASSERT_EQ(dc.Read(), c.data);
    cublasLtMatrixTransformDescDestroy(desc);
  }
}

}  // namespace
}  // namespace softgpu::cublas

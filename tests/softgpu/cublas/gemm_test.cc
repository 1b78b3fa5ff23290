// Every gemm against brute force on random cases whose products are exact.
#include <cmath>
#include <limits>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"
#include "tests/softgpu/cublas/vendor_names.h"

namespace softgpu::cublas {
namespace {

constexpr int kCases = 40;

// T: elements of A and B; R: of C and the scalars as the reference computes them.
template <class T>
struct Case {
  explicit Case(Random& random)
      : op_a(random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})),
        op_b(random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})),
        m(random.Between(0, 40)),
        n(random.Between(0, 40)),
        k(random.Between(0, 40)) {}

  Grid<T> A(Random& random) const {
    return op_a == CUBLAS_OP_N ? RandomGrid<T>(random, m, k) : RandomGrid<T>(random, k, m);
  }
  Grid<T> B(Random& random) const {
    return op_b == CUBLAS_OP_N ? RandomGrid<T>(random, k, n) : RandomGrid<T>(random, n, k);
  }

  cublasOperation_t op_a, op_b;
  int64_t m, n, k;
};

template <class E, class T>
E At(const Grid<T>& grid, cublasOperation_t op, int64_t i, int64_t j) {
  const E value = ElementFrom<E>(op == CUBLAS_OP_N ? grid(i, j) : grid(j, i));
  return ConjIf(op == CUBLAS_OP_C, value);
}

// C = alpha * op(A) * op(B) + beta * C in E. With beta zero, C isn't read.
template <class E, class T, class R>
void Reference(const Case<T>& c, E alpha, const Grid<T>& a, const Grid<T>& b, E beta,
               Grid<R>& result) {
  for (int64_t j = 0; j < c.n; ++j) {
    for (int64_t i = 0; i < c.m; ++i) {
      E sum{};
      for (int64_t p = 0; p < c.k; ++p) sum += At<E>(a, c.op_a, i, p) * At<E>(b, c.op_b, p, j);
      E value = alpha * sum;
      if (beta != E(0)) value += beta * ElementFrom<E>(result(i, j));
      result(i, j) = ElementTo<R>(value);
    }
  }
}

// Equal as numbers: Half and Bfloat16 have no operator==, and zeros may differ in sign.
template <class E, class R>
std::vector<E> As(const std::vector<R>& values) {
  std::vector<E> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = ElementFrom<E>(values[i]);
  return result;
}

template <class T>
class GemmTest : public CublasTest {};
using Types = ::testing::Types<float, double, Complex64, Complex128>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, AgreesWithBruteForce) {
  using T = TypeParam;
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const Case<T> c(random);
    const Grid<T> a = c.A(random), b = c.B(random);
    Grid<T> expected = RandomGrid<T>(random, c.m, c.n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    const DeviceArray<T> device_a(a.data), device_b(b.data), device_c(expected.data);
    ASSERT_EQ(
        Vendor<T>::gemm(this->handle_, c.op_a, c.op_b, c.m, c.n, c.k, V(&alpha), V(device_a.get()),
                        a.ld, V(device_b.get()), b.ld, V(&beta), V(device_c.get()), expected.ld),
        CUBLAS_STATUS_SUCCESS);
    Reference(c, alpha, a, b, beta, expected);
    ASSERT_EQ(device_c.Read(), expected.data) << c.m << "x" << c.n << "x" << c.k;
  }
}

TYPED_TEST(GemmTest, LargeProductsAreTiledRight) {
  using T = TypeParam;
  Random random;
  SCOPED_TRACE(random.Describe());
  for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    Case<T> c(random);
    c.op_a = op;
    c.op_b = op == CUBLAS_OP_N ? CUBLAS_OP_C : CUBLAS_OP_N;
    c.m = 300 + random.Between(0, 40);
    c.n = 270 + random.Between(0, 40);
    c.k = 40;
    const Grid<T> a = c.A(random), b = c.B(random);
    Grid<T> expected = RandomGrid<T>(random, c.m, c.n);
    const T alpha = T(2), beta = T(-1);
    const DeviceArray<T> device_a(a.data), device_b(b.data), device_c(expected.data);
    ASSERT_EQ(Vendor<T>::gemm_64(this->handle_, c.op_a, c.op_b, c.m, c.n, c.k, V(&alpha),
                                 V(device_a.get()), a.ld, V(device_b.get()), b.ld, V(&beta),
                                 V(device_c.get()), expected.ld),
              CUBLAS_STATUS_SUCCESS);
    Reference(c, alpha, a, b, beta, expected);
    ASSERT_EQ(device_c.Read(), expected.data);
  }
}

TYPED_TEST(GemmTest, ZeroBetaIgnoresNaN) {
  using T = TypeParam;
  const T nan = T(std::numeric_limits<Real<T>>::quiet_NaN()), one = T(1), zero = T(0);
  const DeviceArray<T> a(std::vector<T>(16, one)), c(std::vector<T>(16, nan));
  ASSERT_EQ(Vendor<T>::gemm(this->handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, V(&one), V(a.get()),
                            4, V(a.get()), 4, V(&zero), V(c.get()), 4),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.Read(), std::vector<T>(16, T(4)));
}

TYPED_TEST(GemmTest, BatchesByStrideAndByPointer) {
  using T = TypeParam;
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 10; ++round) {
    const Case<T> c(random);
    const int batch = static_cast<int>(random.Between(0, 5));
    std::vector<T> all_a, all_b, all_c, expected;
    Grid<T> a = c.A(random), b = c.B(random), result = RandomGrid<T>(random, c.m, c.n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    for (int i = 0; i < batch; ++i) {
      a.data = random.Numbers<T>(a.data.size());
      b.data = random.Numbers<T>(b.data.size());
      result.data = random.Numbers<T>(result.data.size());
      all_a.insert(all_a.end(), a.data.begin(), a.data.end());
      all_b.insert(all_b.end(), b.data.begin(), b.data.end());
      all_c.insert(all_c.end(), result.data.begin(), result.data.end());
      Reference(c, alpha, a, b, beta, result);
      expected.insert(expected.end(), result.data.begin(), result.data.end());
    }
    const DeviceArray<T> device_a(all_a), device_b(all_b);
    DeviceArray<T> device_c(all_c);
    const int64_t stride_a = a.data.size(), stride_b = b.data.size(), stride_c = result.data.size();
    ASSERT_EQ(
        Vendor<T>::gemm_strided(this->handle_, c.op_a, c.op_b, c.m, c.n, c.k, V(&alpha),
                                V(device_a.get()), a.ld, stride_a, V(device_b.get()), b.ld,
                                stride_b, V(&beta), V(device_c.get()), result.ld, stride_c, batch),
        CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(device_c.Read(), expected);

    device_c.Write(all_c);
    std::vector<decltype(V(std::declval<const T*>()))> list_a, list_b;
    std::vector<decltype(V(std::declval<T*>()))> list_c;
    for (int i = 0; i < batch; ++i) {
      list_a.push_back(V(static_cast<const T*>(device_a.get() + i * stride_a)));
      list_b.push_back(V(static_cast<const T*>(device_b.get() + i * stride_b)));
      list_c.push_back(V(device_c.get() + i * stride_c));
    }
    const DeviceArray<decltype(V(std::declval<const T*>()))> array_a(list_a), array_b(list_b);
    const DeviceArray<decltype(V(std::declval<T*>()))> array_c(list_c);
    ASSERT_EQ(Vendor<T>::gemm_batched(this->handle_, c.op_a, c.op_b, c.m, c.n, c.k, V(&alpha),
                                      array_a.get(), a.ld, array_b.get(), b.ld, V(&beta),
                                      array_c.get(), result.ld, batch),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(device_c.Read(), expected);
  }
}

// As layers do that several rows go through: A has more rows than a panel.
TYPED_TEST(GemmTest, BatchesThatShareA) {
  using T = TypeParam;
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 4; ++round) {
    Case<T> c(random);
    c.m = random.Between(250, 600);
    c.n = random.Between(1, 9);
    const int batch = static_cast<int>(random.Between(2, 5));
    const Grid<T> a = c.A(random);
    Grid<T> b = c.B(random), result = RandomGrid<T>(random, c.m, c.n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    std::vector<T> all_b, all_c, expected;
    for (int i = 0; i < batch; ++i) {
      b.data = random.Numbers<T>(b.data.size());
      result.data = random.Numbers<T>(result.data.size());
      all_b.insert(all_b.end(), b.data.begin(), b.data.end());
      all_c.insert(all_c.end(), result.data.begin(), result.data.end());
      Reference(c, alpha, a, b, beta, result);
      expected.insert(expected.end(), result.data.begin(), result.data.end());
    }
    const DeviceArray<T> device_a(a.data), device_b(all_b), device_c(all_c);
    ASSERT_EQ(
        Vendor<T>::gemm_strided(this->handle_, c.op_a, c.op_b, c.m, c.n, c.k, V(&alpha),
                                V(device_a.get()), a.ld, 0, V(device_b.get()), b.ld, b.data.size(),
                                V(&beta), V(device_c.get()), result.ld, result.data.size(), batch),
        CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(device_c.Read(), expected) << c.m << "x" << c.n << "x" << c.k << ", " << batch;
  }
}

// GemmEx with elements T, results R, scalars S and arithmetic E.
template <class T, class R, class S, class E>
void CheckGemmEx(cublasHandle_t handle, cublasComputeType_t compute) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 20; ++round) {
    const Case<T> c(random);
    const Grid<T> a = c.A(random), b = c.B(random);
    Grid<R> expected = RandomGrid<R>(random, c.m, c.n);
    const S alpha = random.Number<S>(), beta = random.Number<S>();
    const DeviceArray<T> device_a(a.data), device_b(b.data);
    const DeviceArray<R> device_c(expected.data);
    ASSERT_EQ(cublasGemmEx(handle, c.op_a, c.op_b, c.m, c.n, c.k, &alpha, device_a.get(),
                           kDataType<T>, a.ld, device_b.get(), kDataType<T>, b.ld, &beta,
                           device_c.get(), kDataType<R>, expected.ld, compute, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    Reference<E>(c, ElementFrom<E>(alpha), a, b, ElementFrom<E>(beta), expected);
    ASSERT_EQ(As<E>(device_c.Read()), As<E>(expected.data));
  }
}

using GemmExTest = CublasTest;

TEST_F(GemmExTest, HalfWithFloatSums) {
  CheckGemmEx<Half, Half, float, float>(handle_, CUBLAS_COMPUTE_32F);
}
TEST_F(GemmExTest, HalfWithHalfScalars) {
  CheckGemmEx<Half, Half, Half, float>(handle_, CUBLAS_COMPUTE_16F);
}
TEST_F(GemmExTest, HalfToFloat) {
  CheckGemmEx<Half, float, float, float>(handle_, CUBLAS_COMPUTE_32F);
}
TEST_F(GemmExTest, Bfloat16) {
  CheckGemmEx<Bfloat16, Bfloat16, float, float>(handle_, CUBLAS_COMPUTE_32F_FAST_16BF);
}
TEST_F(GemmExTest, Bfloat16ToFloat) {
  CheckGemmEx<Bfloat16, float, float, float>(handle_, CUBLAS_COMPUTE_32F);
}
TEST_F(GemmExTest, Tf32) {
  CheckGemmEx<float, float, float, float>(handle_, CUBLAS_COMPUTE_32F_FAST_TF32);
}
TEST_F(GemmExTest, Double) {
  CheckGemmEx<double, double, double, double>(handle_, CUBLAS_COMPUTE_64F);
}
TEST_F(GemmExTest, Complex) {
  CheckGemmEx<Complex64, Complex64, Complex64, Complex64>(handle_, CUBLAS_COMPUTE_32F);
}
TEST_F(GemmExTest, BytesToInts) {
  CheckGemmEx<int8_t, int32_t, int32_t, int32_t>(handle_, CUBLAS_COMPUTE_32I);
}
TEST_F(GemmExTest, BytesToFloat) {
  CheckGemmEx<int8_t, float, float, float>(handle_, CUBLAS_COMPUTE_32F);
}

TEST_F(GemmExTest, UnsupportedCombinationsSayNotSupported) {
  const float one = 1;
  const DeviceArray<float> memory(std::vector<float>(64));
  const auto call = [&](cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t type) {
    return cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, memory.get(), a, 2,
                        memory.get(), b, 2, &one, memory.get(), c, 2, type, CUBLAS_GEMM_DEFAULT);
  };
  EXPECT_EQ(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call(CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_64F, CUBLAS_COMPUTE_64F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_16F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(call(CUDA_R_4I, CUDA_R_4I, CUDA_R_32I, CUBLAS_COMPUTE_32I),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(GemmExTest, GroupsOfDifferentShapes) {
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  const DeviceArray<float> device_a(a), device_b(b), first(std::vector<float>(4)),
      second(std::vector<float>(1));
  const DeviceArray<const float*> list_a({device_a.get(), device_a.get()});
  const DeviceArray<const float*> list_b({device_b.get(), device_b.get()});
  const DeviceArray<float*> list_c({first.get(), second.get()});
  const cublasOperation_t ops_a[] = {CUBLAS_OP_N, CUBLAS_OP_T},
                          ops_b[] = {CUBLAS_OP_N, CUBLAS_OP_N};
  const int m[] = {2, 1}, n[] = {2, 1}, k[] = {2, 4}, lda[] = {2, 4}, ldb[] = {2, 4},
            ldc[] = {2, 1};
  const int sizes[] = {1, 1};
  const float alpha[] = {1, 10}, beta[] = {0, 0};
  ASSERT_EQ(cublasSgemmGroupedBatched(handle_, ops_a, ops_b, m, n, k, alpha, list_a.get(), lda,
                                      list_b.get(), ldb, beta, list_c.get(), ldc, 2, sizes),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(first.Read(), (std::vector<float>{23, 34, 31, 46}));
  EXPECT_EQ(second.Read(), (std::vector<float>{700}));
}

TEST_F(GemmExTest, HgemmAndSgemmEx) {
  const Half one = ToHalf(1), zero = ToHalf(0);
  const DeviceArray<Half> a({ToHalf(1), ToHalf(2), ToHalf(3), ToHalf(4)});
  const DeviceArray<Half> c(std::vector<Half>(4, ToHalf(NAN)));
  ASSERT_EQ(cublasHgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, V(&one), V(a.get()), 2,
                        V(a.get()), 2, V(&zero), V(c.get()), 2),
            CUBLAS_STATUS_SUCCESS);
  const std::vector<Half> product = c.Read();
  EXPECT_EQ(ToFloat(product[0]), 7);
  EXPECT_EQ(ToFloat(product[3]), 22);
  const float alpha = 2, beta = 0;
  const DeviceArray<float> wide(std::vector<float>(4));
  ASSERT_EQ(cublasSgemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &alpha, a.get(), CUDA_R_16F,
                          2, a.get(), CUDA_R_16F, 2, &beta, wide.get(), CUDA_R_32F, 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(wide.Read(), (std::vector<float>{10, 22, 22, 50}));
}

}  // namespace
}  // namespace softgpu::cublas

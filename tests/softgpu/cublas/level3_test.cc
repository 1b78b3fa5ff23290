// Level 3 except gemm, and the BLAS-like extensions, against brute force on full matrices.
#include <cmath>
#include <limits>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"
#include "tests/softgpu/cublas/vendor_names.h"

namespace softgpu::cublas {
namespace {

constexpr int kCases = 25;
constexpr auto kOk = CUBLAS_STATUS_SUCCESS;

bool InTriangle(cublasFillMode_t uplo, int64_t i, int64_t j) {
  return uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
}

template <class T>
Grid<T> Plain(int64_t rows, int64_t columns) {
  return {rows, columns, std::max<int64_t>(1, rows), std::vector<T>(rows * columns)};
}

template <class T>
Grid<T> Product(const Grid<T>& a, const Grid<T>& b) {
  Grid<T> c = Plain<T>(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t p = 0; p < a.columns; ++p) c(i, j) += a(i, p) * b(p, j);
    }
  }
  return c;
}

template <class T>
Grid<T> Apply(cublasOperation_t op, const Grid<T>& a) {
  const bool normal = op == CUBLAS_OP_N;
  Grid<T> result = Plain<T>(normal ? a.rows : a.columns, normal ? a.columns : a.rows);
  for (int64_t i = 0; i < result.rows; ++i) {
    for (int64_t j = 0; j < result.columns; ++j) {
      result(i, j) = normal ? a(i, j) : ConjIf(op == CUBLAS_OP_C, a(j, i));
    }
  }
  return result;
}

// The full matrix of which one triangle is stored.
template <class T>
Grid<T> Symmetric(const Grid<T>& a, cublasFillMode_t uplo, bool hermitian) {
  Grid<T> full = Plain<T>(a.rows, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.rows; ++j) {
      full(i, j) = InTriangle(uplo, i, j) ? a(i, j) : ConjIf(hermitian, a(j, i));
      if (hermitian && i == j) full(i, j) = T(RealPart(a(i, i)));
    }
  }
  return full;
}

template <class T>
Grid<T> Triangular(const Grid<T>& a, cublasFillMode_t uplo, bool unit) {
  Grid<T> full = Plain<T>(a.rows, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.rows; ++j) {
      if (InTriangle(uplo, i, j)) full(i, j) = i == j && unit ? T(1) : a(i, j);
    }
  }
  return full;
}

// c = alpha * sum + beta * c where `in` holds; elsewhere c is untouched.
template <class T, class In>
void Accumulate(Grid<T>& c, T alpha, const Grid<T>& sum, T beta, const In& in) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      if (!in(i, j)) continue;
      c(i, j) = alpha * sum(i, j) + (beta == T(0) ? T(0) : beta * c(i, j));
    }
  }
}

template <class T>
class Level3Test : public CublasTest {
 protected:
  Random random_;
};
using Types = ::testing::Types<float, double, Complex64, Complex128>;
TYPED_TEST_SUITE(Level3Test, Types);

TYPED_TEST(Level3Test, SymmAndHemm) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const cublasSideMode_t side = random.Pick({CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT});
    const cublasFillMode_t uplo = random.Pick({CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER});
    const int64_t m = random.Between(1, 20), n = random.Between(1, 20);
    const int64_t order = side == CUBLAS_SIDE_LEFT ? m : n;
    const Grid<T> a = RandomGrid<T>(random, order, order), b = RandomGrid<T>(random, m, n);
    Grid<T> c = RandomGrid<T>(random, m, n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    auto* routine = Vendor<T>::symm;
    bool hermitian = false;
    if constexpr (kIsComplex<T>) {
      hermitian = random.Between(0, 1) == 1;
      if (hermitian) routine = Vendor<T>::hemm;
    }
    const DeviceArray<T> da(a.data), db(b.data), dc(c.data);
    ASSERT_EQ(routine(this->handle_, side, uplo, m, n, V(&alpha), V(da.get()), a.ld, V(db.get()),
                      b.ld, V(&beta), V(dc.get()), c.ld),
              kOk);
    const Grid<T> full = Symmetric(a, uplo, hermitian);
    Accumulate(c, alpha, side == CUBLAS_SIDE_LEFT ? Product(full, b) : Product(b, full), beta,
               [](int64_t, int64_t) { return true; });
    ASSERT_EQ(dc.Read(), c.data);
  }
}

TYPED_TEST(Level3Test, RankUpdates) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const cublasFillMode_t uplo = random.Pick({CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER});
    const bool normal = random.Between(0, 1) == 1;
    const cublasOperation_t op = normal ? CUBLAS_OP_N : CUBLAS_OP_T;
    const int64_t n = random.Between(1, 20), k = random.Between(0, 20);
    const Grid<T> a = normal ? RandomGrid<T>(random, n, k) : RandomGrid<T>(random, k, n);
    const Grid<T> b = normal ? RandomGrid<T>(random, n, k) : RandomGrid<T>(random, k, n);
    const Grid<T> c = RandomGrid<T>(random, n, n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    const DeviceArray<T> da(a.data), db(b.data);
    const Grid<T> op_a = Apply(op, a), op_b = Apply(op, b);
    const Grid<T> aa = Product(op_a, Apply(CUBLAS_OP_T, op_a));
    const Grid<T> ab = Product(op_a, Apply(CUBLAS_OP_T, op_b));
    const Grid<T> ba = Product(op_b, Apply(CUBLAS_OP_T, op_a));
    const auto in = [&](int64_t i, int64_t j) { return InTriangle(uplo, i, j); };

    DeviceArray<T> dc(c.data);
    ASSERT_EQ(Vendor<T>::syrk(this->handle_, uplo, op, n, k, V(&alpha), V(da.get()), a.ld, V(&beta),
                              V(dc.get()), c.ld),
              kOk);
    Grid<T> expected = c;
    Accumulate(expected, alpha, aa, beta, in);
    ASSERT_EQ(dc.Read(), expected.data);

    dc.Write(c.data);
    ASSERT_EQ(Vendor<T>::syr2k(this->handle_, uplo, op, n, k, V(&alpha), V(da.get()), a.ld,
                               V(db.get()), b.ld, V(&beta), V(dc.get()), c.ld),
              kOk);
    expected = c;
    Accumulate(expected, alpha, ab, beta, in);
    Accumulate(expected, alpha, ba, T(1), in);
    ASSERT_EQ(dc.Read(), expected.data);

    dc.Write(c.data);
    ASSERT_EQ(Vendor<T>::syrkx(this->handle_, uplo, op, n, k, V(&alpha), V(da.get()), a.ld,
                               V(db.get()), b.ld, V(&beta), V(dc.get()), c.ld),
              kOk);
    expected = c;
    Accumulate(expected, alpha, ab, beta, in);
    ASSERT_EQ(dc.Read(), expected.data);
  }
}

template <class T>
void MakeDiagonalReal(Grid<T>& c) {
  for (int64_t i = 0; i < c.rows; ++i) c(i, i) = T(RealPart(c(i, i)));
}

template <class T>
class HermitianTest : public Level3Test<T> {};
using ComplexTypes = ::testing::Types<Complex64, Complex128>;
TYPED_TEST_SUITE(HermitianTest, ComplexTypes);

TYPED_TEST(HermitianTest, RankUpdates) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const cublasFillMode_t uplo = random.Pick({CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER});
    const bool normal = random.Between(0, 1) == 1;
    const cublasOperation_t op = normal ? CUBLAS_OP_N : CUBLAS_OP_C;
    const int64_t n = random.Between(1, 20), k = random.Between(1, 20);
    const Grid<T> a = normal ? RandomGrid<T>(random, n, k) : RandomGrid<T>(random, k, n);
    const Grid<T> b = normal ? RandomGrid<T>(random, n, k) : RandomGrid<T>(random, k, n);
    Grid<T> c = RandomGrid<T>(random, n, n);
    MakeDiagonalReal(c);
    T alpha(random.Between(1, 3), random.Between(-2, 2));
    const Real<T> real_alpha = alpha.real(), beta = static_cast<Real<T>>(random.Between(0, 3));
    const DeviceArray<T> da(a.data), db(b.data);
    const Grid<T> op_a = Apply(op, a), op_b = Apply(op, b);
    const auto in = [&](int64_t i, int64_t j) { return InTriangle(uplo, i, j); };

    DeviceArray<T> dc(c.data);
    ASSERT_EQ(Vendor<T>::herk(this->handle_, uplo, op, n, k, &real_alpha, V(da.get()), a.ld, &beta,
                              V(dc.get()), c.ld),
              kOk);
    Grid<T> expected = c;
    Accumulate(expected, T(real_alpha), Product(op_a, Apply(CUBLAS_OP_C, op_a)), T(beta), in);
    ASSERT_EQ(dc.Read(), expected.data);

    dc.Write(c.data);
    ASSERT_EQ(Vendor<T>::her2k(this->handle_, uplo, op, n, k, V(&alpha), V(da.get()), a.ld,
                               V(db.get()), b.ld, &beta, V(dc.get()), c.ld),
              kOk);
    expected = c;
    Accumulate(expected, alpha, Product(op_a, Apply(CUBLAS_OP_C, op_b)), T(beta), in);
    Accumulate(expected, std::conj(alpha), Product(op_b, Apply(CUBLAS_OP_C, op_a)), T(1), in);
    MakeDiagonalReal(expected);
    ASSERT_EQ(dc.Read(), expected.data);

    // B a real multiple of A, so that the result is Hermitian as herkx requires.
    Grid<T> twice = a;
    for (T& value : twice.data) value *= Real<T>(2);
    const DeviceArray<T> d2(twice.data);
    const T real_scalar = T(real_alpha);
    dc.Write(c.data);
    ASSERT_EQ(Vendor<T>::herkx(this->handle_, uplo, op, n, k, V(&real_scalar), V(da.get()), a.ld,
                               V(d2.get()), a.ld, &beta, V(dc.get()), c.ld),
              kOk);
    expected = c;
    Accumulate(expected, real_scalar, Product(op_a, Apply(CUBLAS_OP_C, Apply(op, twice))), T(beta),
               in);
    ASSERT_EQ(dc.Read(), expected.data);
    EXPECT_EQ(Vendor<T>::herk(this->handle_, uplo, CUBLAS_OP_T, n, k, &real_alpha, V(da.get()),
                              a.ld, &beta, V(dc.get()), c.ld),
              CUBLAS_STATUS_INVALID_VALUE);
  }
}

TYPED_TEST(Level3Test, TrmmAndTrsm) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 2 * kCases; ++round) {
    const cublasSideMode_t side = random.Pick({CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT});
    const cublasFillMode_t uplo = random.Pick({CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER});
    const cublasOperation_t op = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C});
    const cublasDiagType_t diag = random.Pick({CUBLAS_DIAG_UNIT, CUBLAS_DIAG_NON_UNIT});
    const bool left = side == CUBLAS_SIDE_LEFT;
    const int64_t small = random.Between(1, 7), other = random.Between(1, 20);
    const int64_t m = left ? small : other, n = left ? other : small;
    Grid<T> a = RandomGrid<T>(random, small, small);
    for (int64_t i = 0; i < small; ++i) a(i, i) = T(random.Pick({1, -1, 2}));  // exact to divide by
    const Grid<T> b = RandomGrid<T>(random, m, n);
    Grid<T> c = RandomGrid<T>(random, m, n);
    const T alpha = T(random.Pick({1, 2, -1})), one = T(1);
    const DeviceArray<T> da(a.data), db(b.data), dc(c.data);
    ASSERT_EQ(Vendor<T>::trmm(this->handle_, side, uplo, op, diag, m, n, V(&alpha), V(da.get()),
                              a.ld, V(db.get()), b.ld, V(dc.get()), c.ld),
              kOk);
    const Grid<T> full = Apply(op, Triangular(a, uplo, diag == CUBLAS_DIAG_UNIT));
    const Grid<T> untouched = c;
    Accumulate(c, alpha, left ? Product(full, b) : Product(b, full), T(0),
               [](int64_t, int64_t) { return true; });
    ASSERT_EQ(dc.Read(), c.data);

    ASSERT_EQ(Vendor<T>::trsm(this->handle_, side, uplo, op, diag, m, n, V(&one), V(da.get()), a.ld,
                              V(dc.get()), c.ld),
              kOk);
    Accumulate(c, alpha, b, T(0), [](int64_t, int64_t) { return true; });
    ASSERT_EQ(dc.Read(), c.data);
  }
}

TYPED_TEST(Level3Test, BatchedTrsmEqualsSingle) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  const int64_t m = 6, n = 5;
  std::vector<T> a = random.Numbers<T>(m * m * 2);
  for (int64_t i = 0; i < m; ++i) a[i + i * m] = a[m * m + i + i * m] = T(2);
  const std::vector<T> b = random.Numbers<T>(m * n * 2);
  const DeviceArray<T> da(a), batched(b), single(b);
  const DeviceArray<decltype(V(std::declval<const T*>()))> list_a(
      {V(static_cast<const T*>(da.get())), V(static_cast<const T*>(da.get() + m * m))});
  const DeviceArray<decltype(V(std::declval<T*>()))> list_b(
      {V(batched.get()), V(batched.get() + m * n)});
  const T alpha = T(3);
  ASSERT_EQ(Vendor<T>::trsm_batched(this->handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                                    CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, m, n, V(&alpha),
                                    list_a.get(), m, list_b.get(), m, 2),
            kOk);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Vendor<T>::trsm(this->handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                              CUBLAS_DIAG_NON_UNIT, m, n, V(&alpha), V(da.get() + i * m * m), m,
                              V(single.get() + i * m * n), m),
              kOk);
  }
  EXPECT_EQ(batched.Read(), single.Read());
}

TYPED_TEST(Level3Test, ZeroBetaIgnoresNaN) {
  using T = TypeParam;
  const T nan = T(std::numeric_limits<Real<T>>::quiet_NaN()), one = T(1), zero = T(0);
  const DeviceArray<T> a(std::vector<T>(9, one));
  DeviceArray<T> c(std::vector<T>(9, nan));
  ASSERT_EQ(Vendor<T>::symm(this->handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, 3, 3, V(&one),
                            V(a.get()), 3, V(a.get()), 3, V(&zero), V(c.get()), 3),
            kOk);
  EXPECT_EQ(c.Read(), std::vector<T>(9, T(3)));
  c.Write(std::vector<T>(9, nan));
  ASSERT_EQ(Vendor<T>::syrk(this->handle_, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 3, 3, V(&one),
                            V(a.get()), 3, V(&zero), V(c.get()), 3),
            kOk);
  const std::vector<T> triangle = c.Read();
  for (const int stored : {0, 1, 2, 4, 5, 8}) EXPECT_EQ(triangle[stored], T(3)) << stored;
  for (const int other : {3, 6, 7}) EXPECT_TRUE(std::isnan(RealPart(triangle[other]))) << other;
}

TYPED_TEST(Level3Test, GeamAndDgmm) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const cublasOperation_t op_a = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C});
    const cublasOperation_t op_b = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C});
    const int64_t m = random.Between(1, 20), n = random.Between(1, 20);
    const auto operand = [&](cublasOperation_t op) {
      return op == CUBLAS_OP_N ? RandomGrid<T>(random, m, n) : RandomGrid<T>(random, n, m);
    };
    const Grid<T> a = operand(op_a), b = operand(op_b);
    Grid<T> c = RandomGrid<T>(random, m, n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    const DeviceArray<T> da(a.data), db(b.data), dc(c.data);
    ASSERT_EQ(Vendor<T>::geam(this->handle_, op_a, op_b, m, n, V(&alpha), V(da.get()), a.ld,
                              V(&beta), V(db.get()), b.ld, V(dc.get()), c.ld),
              kOk);
    const Grid<T> left = Apply(op_a, a), right = Apply(op_b, b);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c(i, j) = alpha * left(i, j) + beta * right(i, j);
    }
    ASSERT_EQ(dc.Read(), c.data);

    const cublasSideMode_t side = random.Pick({CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT});
    const Steps<T> x = RandomSteps<T>(random, side == CUBLAS_SIDE_LEFT ? m : n);
    const DeviceArray<T> dx(x.data);
    ASSERT_EQ(Vendor<T>::dgmm(this->handle_, side, m, n, V(dc.get()), c.ld, V(dx.get()), x.step,
                              V(dc.get()), c.ld),
              kOk);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c(i, j) *= x[side == CUBLAS_SIDE_LEFT ? i : j];
    }
    ASSERT_EQ(dc.Read(), c.data);
  }
}

using PackedTest = CublasTest;

TEST_F(PackedTest, TrianglesToAndFromPacked) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const DeviceArray<float> da(a), packed(std::vector<float>(6)), back(std::vector<float>(9));
  ASSERT_EQ(cublasStrttp(handle_, CUBLAS_FILL_MODE_LOWER, 3, da.get(), 3, packed.get()), kOk);
  EXPECT_EQ(packed.Read(), (std::vector<float>{1, 2, 3, 5, 6, 9}));
  ASSERT_EQ(cublasStpttr(handle_, CUBLAS_FILL_MODE_LOWER, 3, packed.get(), back.get(), 3), kOk);
  EXPECT_EQ(back.Read(), (std::vector<float>{1, 2, 3, 0, 5, 6, 0, 0, 9}));
  ASSERT_EQ(cublasStrttp(handle_, CUBLAS_FILL_MODE_UPPER, 3, da.get(), 3, packed.get()), kOk);
  EXPECT_EQ(packed.Read(), (std::vector<float>{1, 4, 5, 7, 8, 9}));
}

}  // namespace
}  // namespace softgpu::cublas

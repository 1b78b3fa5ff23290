// Level 2 against brute force: each stored form is expanded to a full matrix, and the product, the
// solve or the update is done on that.
#include <cmath>
#include <limits>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"
#include "tests/softgpu/cublas/vendor_names.h"

namespace softgpu::cublas {
namespace {

constexpr int kCases = 30;
constexpr auto kOk = CUBLAS_STATUS_SUCCESS;

template <class T>
using Full = std::vector<std::vector<T>>;  // [i][j]

enum class Storage { kFull, kBand, kPacked };

// A random triangle of an n x n matrix in one of the three storages.
template <class T>
struct Triangle {
  Triangle(Random& random, Storage storage, int64_t n)
      : storage(storage),
        uplo(random.Pick({CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER})),
        n(n),
        k(storage == Storage::kBand ? random.Between(0, 4) : n),
        ld((storage == Storage::kBand ? k + 1 : std::max<int64_t>(1, n)) + random.Between(0, 2)) {
    data = random.Numbers<T>(storage == Storage::kPacked ? n * (n + 1) / 2 : ld * n);
  }
  bool Has(int64_t i, int64_t j) const {
    const bool in = uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
    return in && std::abs(i - j) <= k;
  }
  T& At(int64_t i, int64_t j) {
    const bool upper = uplo == CUBLAS_FILL_MODE_UPPER;
    switch (storage) {
      case Storage::kFull:
        return data[i + j * ld];
      case Storage::kBand:
        return data[(upper ? k + i - j : i - j) + j * ld];
      case Storage::kPacked:
        break;
    }
    int64_t index = 0;  // by counting, to be independent of the formula under test
    for (int64_t c = 0; c < j; ++c) index += upper ? c + 1 : n - c;
    return data[index + (upper ? i : i - j)];
  }
  Full<T> Symmetric(bool hermitian) {
    Full<T> full(n, std::vector<T>(n));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (i == j)
          full[i][j] = hermitian ? T(RealPart(At(i, i))) : At(i, i);
        else if (Has(i, j))
          full[i][j] = At(i, j);
        else if (Has(j, i))
          full[i][j] = ConjIf(hermitian, At(j, i));
      }
    }
    return full;
  }
  Full<T> Triangular(cublasOperation_t op, bool unit) {
    Full<T> full(n, std::vector<T>(n));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const T value = i == j && unit ? T(1) : Has(i, j) ? At(i, j) : T(0);
        if (op == CUBLAS_OP_N)
          full[i][j] = value;
        else
          full[j][i] = ConjIf(op == CUBLAS_OP_C, value);
      }
    }
    return full;
  }
  Storage storage;
  cublasFillMode_t uplo;
  int64_t n, k, ld;
  std::vector<T> data;
};

// y = alpha * full * x + beta * y; with beta zero, y isn't read.
template <class T>
void Multiply(const Full<T>& full, T alpha, const Steps<T>& x, T beta, Steps<T>& y) {
  for (size_t i = 0; i < full.size(); ++i) {
    T sum{};
    for (size_t j = 0; j < full[i].size(); ++j) sum += full[i][j] * x[j];
    y[i] = alpha * sum + (beta == T(0) ? T(0) : beta * y[i]);
  }
}

template <class T>
class Level2Test : public CublasTest {
 protected:
  Random random_;
};
using Types = ::testing::Types<float, double, Complex64, Complex128>;
TYPED_TEST_SUITE(Level2Test, Types);

TYPED_TEST(Level2Test, GeneralAndBand) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const cublasOperation_t op = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C});
    const int64_t m = random.Between(1, 20), n = random.Between(1, 20);
    const int64_t kl = random.Between(0, 4), ku = random.Between(0, 4);
    const bool band = round % 2 == 1;
    const Grid<T> a = band ? RandomGrid<T>(random, kl + ku + 1, n) : RandomGrid<T>(random, m, n);
    Full<T> full(op == CUBLAS_OP_N ? m : n, std::vector<T>(op == CUBLAS_OP_N ? n : m));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const bool stored = !band || (i - j <= kl && j - i <= ku);
        const T value = !stored ? T(0) : band ? a(ku + i - j, j) : a(i, j);
        (op == CUBLAS_OP_N ? full[i][j] : full[j][i]) = ConjIf(op == CUBLAS_OP_C, value);
      }
    }
    const Steps<T> x = RandomSteps<T>(random, full[0].size());
    Steps<T> y = RandomSteps<T>(random, full.size());
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    const DeviceArray<T> da(a.data), dx(x.data), dy(y.data);
    if (band) {
      ASSERT_EQ(Vendor<T>::gbmv(this->handle_, op, m, n, kl, ku, V(&alpha), V(da.get()), a.ld,
                                V(dx.get()), x.step, V(&beta), V(dy.get()), y.step),
                kOk);
    } else {
      ASSERT_EQ(Vendor<T>::gemv(this->handle_, op, m, n, V(&alpha), V(da.get()), a.ld, V(dx.get()),
                                x.step, V(&beta), V(dy.get()), y.step),
                kOk);
    }
    Multiply(full, alpha, x, beta, y);
    ASSERT_EQ(dy.Read(), y.data);
  }
}

TYPED_TEST(Level2Test, ZeroBetaIgnoresNaN) {
  using T = TypeParam;
  const T nan = T(std::numeric_limits<Real<T>>::quiet_NaN()), one = T(1), zero = T(0);
  const DeviceArray<T> a(std::vector<T>(16, one)), x(std::vector<T>(4, one));
  DeviceArray<T> y(std::vector<T>(4, nan));
  const std::vector<T> expected(4, T(4));
  for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    y.Write(std::vector<T>(4, nan));
    ASSERT_EQ(Vendor<T>::gemv(this->handle_, op, 4, 4, V(&one), V(a.get()), 4, V(x.get()), 1,
                              V(&zero), V(y.get()), 1),
              kOk);
    EXPECT_EQ(y.Read(), expected);
  }
  y.Write(std::vector<T>(4, nan));
  ASSERT_EQ(Vendor<T>::symv(this->handle_, CUBLAS_FILL_MODE_LOWER, 4, V(&one), V(a.get()), 4,
                            V(x.get()), 1, V(&zero), V(y.get()), 1),
            kOk);
  EXPECT_EQ(y.Read(), expected);
}

TYPED_TEST(Level2Test, BatchedGemv) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  const int64_t m = 5, n = 7, batch = 3;
  const std::vector<T> a = random.Numbers<T>(m * n * batch), x = random.Numbers<T>(n * batch);
  const std::vector<T> y = random.Numbers<T>(m * batch);
  const T alpha = random.Number<T>(), beta = random.Number<T>();
  const DeviceArray<T> da(a), dx(x), dy(y), single(y);
  ASSERT_EQ(Vendor<T>::gemv_strided(this->handle_, CUBLAS_OP_N, m, n, V(&alpha), V(da.get()), m,
                                    m * n, V(dx.get()), 1, n, V(&beta), V(dy.get()), 1, m, batch),
            kOk);
  for (int64_t i = 0; i < batch; ++i) {
    ASSERT_EQ(
        Vendor<T>::gemv_64(this->handle_, CUBLAS_OP_N, m, n, V(&alpha), V(da.get() + i * m * n), m,
                           V(dx.get() + i * n), 1, V(&beta), V(single.get() + i * m), 1),
        kOk);
  }
  EXPECT_EQ(dy.Read(), single.Read());
}

TYPED_TEST(Level2Test, SymmetricProducts) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    const Storage storage = random.Pick({Storage::kFull, Storage::kBand, Storage::kPacked});
    Triangle<T> a(random, storage, random.Between(1, 20));
    const Steps<T> x = RandomSteps<T>(random, a.n);
    Steps<T> y = RandomSteps<T>(random, a.n);
    const T alpha = random.Number<T>(), beta = random.Number<T>();
    const DeviceArray<T> da(a.data), dx(x.data), dy(y.data);
    bool hermitian = kIsComplex<T>;  // of the band and packed products of complex types
    if (storage == Storage::kBand) {
      ASSERT_EQ(Vendor<T>::sbmv(this->handle_, a.uplo, a.n, a.k, V(&alpha), V(da.get()), a.ld,
                                V(dx.get()), x.step, V(&beta), V(dy.get()), y.step),
                kOk);
    } else if (storage == Storage::kPacked) {
      ASSERT_EQ(Vendor<T>::spmv(this->handle_, a.uplo, a.n, V(&alpha), V(da.get()), V(dx.get()),
                                x.step, V(&beta), V(dy.get()), y.step),
                kOk);
    } else {
      auto* routine = Vendor<T>::symv;
      hermitian = false;
      if constexpr (kIsComplex<T>) {
        hermitian = random.Between(0, 1) == 1;
        if (hermitian) routine = Vendor<T>::hemv;
      }
      ASSERT_EQ(routine(this->handle_, a.uplo, a.n, V(&alpha), V(da.get()), a.ld, V(dx.get()),
                        x.step, V(&beta), V(dy.get()), y.step),
                kOk);
    }
    Multiply(a.Symmetric(hermitian), alpha, x, beta, y);
    ASSERT_EQ(dy.Read(), y.data);
  }
}

TYPED_TEST(Level2Test, TriangularProductsAndSolves) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 2 * kCases; ++round) {
    const Storage storage = random.Pick({Storage::kFull, Storage::kBand, Storage::kPacked});
    const cublasOperation_t op = random.Pick({CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C});
    const cublasDiagType_t diag = random.Pick({CUBLAS_DIAG_UNIT, CUBLAS_DIAG_NON_UNIT});
    Triangle<T> a(random, storage, random.Between(1, 8));
    for (int64_t i = 0; i < a.n; ++i)
      a.At(i, i) = T(random.Pick({1, -1, 2}));  // exact to divide by
    const Steps<T> x = RandomSteps<T>(random, a.n);
    Steps<T> product = x;
    Multiply(a.Triangular(op, diag == CUBLAS_DIAG_UNIT), T(1), x, T(0), product);
    const DeviceArray<T> da(a.data), dx(x.data);
    const auto apply = [&](bool solve) {
      T* const v = dx.get();
      if (storage == Storage::kBand) {
        return (solve ? Vendor<T>::tbsv : Vendor<T>::tbmv)(this->handle_, a.uplo, op, diag, a.n,
                                                           a.k, V(da.get()), a.ld, V(v), x.step);
      }
      if (storage == Storage::kPacked) {
        return (solve ? Vendor<T>::tpsv : Vendor<T>::tpmv)(this->handle_, a.uplo, op, diag, a.n,
                                                           V(da.get()), V(v), x.step);
      }
      return (solve ? Vendor<T>::trsv : Vendor<T>::trmv)(this->handle_, a.uplo, op, diag, a.n,
                                                         V(da.get()), a.ld, V(v), x.step);
    };
    ASSERT_EQ(apply(false), kOk);
    ASSERT_EQ(dx.Read(), product.data);
    ASSERT_EQ(apply(true), kOk);
    ASSERT_EQ(dx.Read(), x.data);
  }
}

TYPED_TEST(Level2Test, GeneralRankOne) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < kCases; ++round) {
    Grid<T> a = RandomGrid<T>(random, random.Between(1, 20), random.Between(1, 20));
    const Steps<T> x = RandomSteps<T>(random, a.rows), y = RandomSteps<T>(random, a.columns);
    const T alpha = random.Number<T>();
    const DeviceArray<T> da(a.data), dx(x.data), dy(y.data);
    auto* routine = Vendor<T>::ger;
    bool conjugate = false;
    if constexpr (kIsComplex<T>) {
      conjugate = random.Between(0, 1) == 1;
      if (conjugate) routine = Vendor<T>::gerc;
    }
    ASSERT_EQ(routine(this->handle_, a.rows, a.columns, V(&alpha), V(dx.get()), x.step, V(dy.get()),
                      y.step, V(da.get()), a.ld),
              kOk);
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.columns; ++j) a(i, j) += alpha * x[i] * ConjIf(conjugate, y[j]);
    }
    ASSERT_EQ(da.Read(), a.data);
  }
}

// What a symmetric (Hermitian) update of rank 2 does, or of rank 1 with y null.
template <class T>
void Update(Triangle<T>& a, bool hermitian, T alpha, const Steps<T>& x, const Steps<T>* y) {
  for (int64_t i = 0; i < a.n; ++i) {
    for (int64_t j = 0; j < a.n; ++j) {
      if (!a.Has(i, j)) continue;
      T& element = a.At(i, j);
      if (y == nullptr) {
        element += alpha * x[i] * ConjIf(hermitian, x[j]);
      } else {
        element += alpha * x[i] * ConjIf(hermitian, (*y)[j]) +
                   ConjIf(hermitian, alpha) * (*y)[i] * ConjIf(hermitian, x[j]);
      }
      if (hermitian && i == j && alpha != T(0)) element = T(RealPart(element));
    }
  }
}

TYPED_TEST(Level2Test, SymmetricUpdates) {
  using T = TypeParam;
  Random& random = this->random_;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 2 * kCases; ++round) {
    const Storage storage = random.Pick({Storage::kFull, Storage::kPacked});
    const bool two = random.Between(0, 1) == 1;
    Triangle<T> a(random, storage, random.Between(1, 12));
    const Steps<T> x = RandomSteps<T>(random, a.n), y = RandomSteps<T>(random, a.n);
    const T alpha = random.Number<T>();
    const Real<T> real_alpha = RealPart(alpha);
    const DeviceArray<T> da(a.data), dx(x.data), dy(y.data);
    bool hermitian = kIsComplex<T> && (storage == Storage::kPacked || random.Between(0, 1) == 1);
    cublasStatus_t status = CUBLAS_STATUS_INTERNAL_ERROR;
    if (storage == Storage::kPacked && two) {
      status = Vendor<T>::spr2(this->handle_, a.uplo, a.n, V(&alpha), V(dx.get()), x.step,
                               V(dy.get()), y.step, V(da.get()));
    } else if (storage == Storage::kPacked) {
      status =
          Vendor<T>::spr(this->handle_, a.uplo, a.n, &real_alpha, V(dx.get()), x.step, V(da.get()));
    } else if (two) {
      auto* routine = Vendor<T>::syr2;
      if constexpr (kIsComplex<T>) {
        if (hermitian) routine = Vendor<T>::her2;
      }
      status = routine(this->handle_, a.uplo, a.n, V(&alpha), V(dx.get()), x.step, V(dy.get()),
                       y.step, V(da.get()), a.ld);
    } else if (hermitian) {
      if constexpr (kIsComplex<T>) {
        status = Vendor<T>::her(this->handle_, a.uplo, a.n, &real_alpha, V(dx.get()), x.step,
                                V(da.get()), a.ld);
      }
    } else {
      status = Vendor<T>::syr(this->handle_, a.uplo, a.n, V(&alpha), V(dx.get()), x.step,
                              V(da.get()), a.ld);
    }
    ASSERT_EQ(status, kOk);
    const bool real_scalar = !two && (hermitian || storage == Storage::kPacked);
    Update(a, hermitian, real_scalar ? T(real_alpha) : alpha, x, two ? &y : nullptr);
    ASSERT_EQ(da.Read(), a.data);
  }
}

}  // namespace
}  // namespace softgpu::cublas

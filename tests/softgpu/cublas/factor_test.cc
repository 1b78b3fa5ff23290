// Batched factorisations: what they factor is multiplied back, what they solve is put back in.
#include <cmath>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"

namespace softgpu::cublas {
namespace {

constexpr auto kOk = CUBLAS_STATUS_SUCCESS;
constexpr int kOrder = 7, kBatch = 3;
constexpr double kRounding =
    1e-11;  // far above the rounding of these small, well-conditioned systems

using Values = std::vector<double>;

class FactorTest : public CublasTest {
 protected:
  // A batch of rows x columns matrices with a heavy diagonal.
  Values RandomBatch(int64_t rows, int64_t columns) {
    Values values = random_.Numbers<double>(rows * columns * kBatch);
    for (int e = 0; e < kBatch; ++e) {
      for (int64_t i = 0; i < std::min(rows, columns); ++i) {
        values[e * rows * columns + (i + 1) % rows + i * rows] +=
            10;  // off the diagonal: pivots move
      }
    }
    return values;
  }
  static DeviceArray<double*> Pointers(const DeviceArray<double>& batch, int64_t stride) {
    std::vector<double*> pointers;
    for (int e = 0; e < kBatch; ++e) pointers.push_back(batch.get() + e * stride);
    return DeviceArray<double*>(pointers);
  }
  // max |A * X - B| over the batch.
  static double Residual(const Values& a, const Values& x, const Values& b, int64_t rows,
                         int64_t inner, int64_t columns) {
    double worst = 0;
    for (int e = 0; e < kBatch; ++e) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double sum = -b[e * rows * columns + i + j * rows];
          for (int64_t p = 0; p < inner; ++p) {
            sum += a[e * rows * inner + i + p * rows] * x[e * inner * columns + p + j * inner];
          }
          worst = std::max(worst, std::abs(sum));
        }
      }
    }
    return worst;
  }
  static Values Identities() {
    Values values(kOrder * kOrder * kBatch);
    for (int e = 0; e < kBatch; ++e) {
      for (int i = 0; i < kOrder; ++i) values[e * kOrder * kOrder + i * (kOrder + 1)] = 1;
    }
    return values;
  }
  Random random_;
};

TEST_F(FactorTest, LuSolvesAndInverts) {
  SCOPED_TRACE(random_.Describe());
  constexpr int kColumns = 2;
  const Values a = RandomBatch(kOrder, kOrder),
               b = random_.Numbers<double>(kOrder * kColumns * kBatch);
  const DeviceArray<double> da(a), db(b), dinverse(Values(a.size()));
  const DeviceArray<double*> list_a = Pointers(da, kOrder * kOrder);
  const DeviceArray<double*> list_b = Pointers(db, kOrder * kColumns);
  const DeviceArray<double*> list_inverse = Pointers(dinverse, kOrder * kOrder);
  const DeviceArray<int> pivots(std::vector<int>(kOrder * kBatch)), info({-1, -1, -1});
  ASSERT_EQ(
      cublasDgetrfBatched(handle_, kOrder, list_a.get(), kOrder, pivots.get(), info.get(), kBatch),
      kOk);
  EXPECT_EQ(info.Read(), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(pivots.Read()[0], 2);  // the heavy element of the first column
  int host_info = -1;
  ASSERT_EQ(cublasDgetrsBatched(handle_, CUBLAS_OP_N, kOrder, kColumns, list_a.get(), kOrder,
                                pivots.get(), list_b.get(), kOrder, &host_info, kBatch),
            kOk);
  EXPECT_EQ(host_info, 0);
  EXPECT_LT(Residual(a, db.Read(), b, kOrder, kOrder, kColumns), kRounding);
  ASSERT_EQ(cublasDgetriBatched(handle_, kOrder, list_a.get(), kOrder, pivots.get(),
                                list_inverse.get(), kOrder, info.get(), kBatch),
            kOk);
  EXPECT_LT(Residual(a, dinverse.Read(), Identities(), kOrder, kOrder, kOrder), kRounding);
}

TEST_F(FactorTest, TransposedSolve) {
  SCOPED_TRACE(random_.Describe());
  const Values a = RandomBatch(kOrder, kOrder), b = random_.Numbers<double>(kOrder * kBatch);
  Values transposed(a.size());
  for (int e = 0; e < kBatch; ++e) {
    for (int i = 0; i < kOrder * kOrder; ++i) {
      transposed[e * kOrder * kOrder + i / kOrder + i % kOrder * kOrder] =
          a[e * kOrder * kOrder + i];
    }
  }
  const DeviceArray<double> da(a), db(b);
  const DeviceArray<double*> list_a = Pointers(da, kOrder * kOrder), list_b = Pointers(db, kOrder);
  const DeviceArray<int> pivots(std::vector<int>(kOrder * kBatch)), info({-1, -1, -1});
  ASSERT_EQ(
      cublasDgetrfBatched(handle_, kOrder, list_a.get(), kOrder, pivots.get(), info.get(), kBatch),
      kOk);
  int host_info = -1;
  ASSERT_EQ(cublasDgetrsBatched(handle_, CUBLAS_OP_T, kOrder, 1, list_a.get(), kOrder, pivots.get(),
                                list_b.get(), kOrder, &host_info, kBatch),
            kOk);
  EXPECT_LT(Residual(transposed, db.Read(), b, kOrder, kOrder, 1), kRounding);
}

TEST_F(FactorTest, MatinvAndSingularMatrices) {
  SCOPED_TRACE(random_.Describe());
  Values a = RandomBatch(kOrder, kOrder);
  const DeviceArray<double> inverse(Values(a.size()));
  DeviceArray<double> da(a);
  const DeviceArray<double*> list_a = Pointers(da, kOrder * kOrder);
  const DeviceArray<double*> list_inverse = Pointers(inverse, kOrder * kOrder);
  const DeviceArray<int> info({-1, -1, -1});
  ASSERT_EQ(cublasDmatinvBatched(handle_, kOrder, list_a.get(), kOrder, list_inverse.get(), kOrder,
                                 info.get(), kBatch),
            kOk);
  EXPECT_LT(Residual(a, inverse.Read(), Identities(), kOrder, kOrder, kOrder), kRounding);
  EXPECT_EQ(da.Read(), a);
  for (int i = 0; i < kOrder; ++i) a[kOrder * kOrder + i] = 0;  // the first column of the second
  da.Write(a);
  ASSERT_EQ(cublasDmatinvBatched(handle_, kOrder, list_a.get(), kOrder, list_inverse.get(), kOrder,
                                 info.get(), kBatch),
            kOk);
  EXPECT_EQ(info.Read(), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(
      cublasDmatinvBatched(handle_, 33, list_a.get(), 33, list_inverse.get(), 33, info.get(), 1),
      CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FactorTest, LeastSquaresLeavesAnOrthogonalResidual) {
  SCOPED_TRACE(random_.Describe());
  constexpr int kRows = 9, kColumns = 4;
  const Values a = RandomBatch(kRows, kColumns), c = random_.Numbers<double>(kRows * kBatch);
  const DeviceArray<double> da(a), dc(c);
  const DeviceArray<double*> list_a = Pointers(da, kRows * kColumns), list_c = Pointers(dc, kRows);
  const DeviceArray<int> device_info({-1, -1, -1});
  int info = -1;
  ASSERT_EQ(cublasDgelsBatched(handle_, CUBLAS_OP_N, kRows, kColumns, 1, list_a.get(), kRows,
                               list_c.get(), kRows, &info, device_info.get(), kBatch),
            kOk);
  EXPECT_EQ(device_info.Read(), (std::vector<int>{0, 0, 0}));
  const Values solved = dc.Read();
  for (int e = 0; e < kBatch; ++e) {
    Values residual(c.begin() + e * kRows, c.begin() + (e + 1) * kRows);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) {
        residual[i] -= a[e * kRows * kColumns + i + j * kRows] * solved[e * kRows + j];
      }
    }
    for (int j = 0; j < kColumns; ++j) {
      double product = 0;
      for (int i = 0; i < kRows; ++i)
        product += a[e * kRows * kColumns + i + j * kRows] * residual[i];
      EXPECT_NEAR(product, 0, kRounding);
    }
  }
}

// R^H * R = A^H * A, also for complex matrices.
TEST_F(FactorTest, QrKeepsTheGramMatrix) {
  SCOPED_TRACE(random_.Describe());
  constexpr int kRows = 6, kColumns = 4;
  const std::vector<Complex128> a = random_.Numbers<Complex128>(kRows * kColumns);
  const DeviceArray<Complex128> da(a), tau(std::vector<Complex128>(kColumns, 0));
  const DeviceArray<cuDoubleComplex*> list_a(
      std::vector<cuDoubleComplex*>{reinterpret_cast<cuDoubleComplex*>(da.get())});
  const DeviceArray<cuDoubleComplex*> list_tau(
      std::vector<cuDoubleComplex*>{reinterpret_cast<cuDoubleComplex*>(tau.get())});
  int info = -1;
  ASSERT_EQ(
      cublasZgeqrfBatched(handle_, kRows, kColumns, list_a.get(), kRows, list_tau.get(), &info, 1),
      kOk);
  const std::vector<Complex128> factored = da.Read();
  for (int i = 0; i < kColumns; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      Complex128 difference{};
      for (int p = 0; p < kRows; ++p) {
        difference += std::conj(a[p + i * kRows]) * a[p + j * kRows];
        if (p <= std::min(i, j)) {
          difference -= std::conj(factored[p + i * kRows]) * factored[p + j * kRows];
        }
      }
      EXPECT_NEAR(std::abs(difference), 0, kRounding);
    }
  }
}

}  // namespace
}  // namespace softgpu::cublas

// Level 1 against brute force: all types, steps of both signs, and the Ex variants.
#include <cmath>

#include "tests/softgpu/cublas/device.h"
#include "tests/softgpu/cublas/random_cases.h"
#include "tests/softgpu/cublas/vendor_names.h"

namespace softgpu::cublas {
namespace {

constexpr int kCases = 30;

template <class T>
class Level1Test : public CublasTest {
 protected:
  Random random_;
};
using Types = ::testing::Types<float, double, Complex64, Complex128>;
TYPED_TEST_SUITE(Level1Test, Types);

TYPED_TEST(Level1Test, CopySwapScalAxpy) {
  using T = TypeParam;
  SCOPED_TRACE(this->random_.Describe());
  for (int round = 0; round < kCases; ++round) {
    const int64_t n = this->random_.Between(0, 50);
    Steps<T> x = RandomSteps<T>(this->random_, n), y = RandomSteps<T>(this->random_, n);
    const DeviceArray<T> device_x(x.data), device_y(y.data);
    const T alpha = this->random_.template Number<T>();
    ASSERT_EQ(Vendor<T>::axpy(this->handle_, n, V(&alpha), V(device_x.get()), x.step,
                              V(device_y.get()), y.step),
              CUBLAS_STATUS_SUCCESS);
    for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
    ASSERT_EQ(device_y.Read(), y.data);

    ASSERT_EQ(
        Vendor<T>::swap(this->handle_, n, V(device_x.get()), x.step, V(device_y.get()), y.step),
        CUBLAS_STATUS_SUCCESS);
    for (int64_t i = 0; i < n; ++i) std::swap(x[i], y[i]);
    ASSERT_EQ(device_x.Read(), x.data);
    ASSERT_EQ(device_y.Read(), y.data);

    const int64_t positive = std::abs(x.step);
    ASSERT_EQ(Vendor<T>::scal(this->handle_, n, V(&alpha), V(device_x.get()), positive),
              CUBLAS_STATUS_SUCCESS);
    for (int64_t i = 0; i < n; ++i) x.data[i * positive] *= alpha;
    ASSERT_EQ(device_x.Read(), x.data);

    ASSERT_EQ(
        Vendor<T>::copy(this->handle_, n, V(device_x.get()), x.step, V(device_y.get()), y.step),
        CUBLAS_STATUS_SUCCESS);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
    ASSERT_EQ(device_y.Read(), y.data);
  }
}

TYPED_TEST(Level1Test, Reductions) {
  using T = TypeParam;
  SCOPED_TRACE(this->random_.Describe());
  for (int round = 0; round < kCases; ++round) {
    const int64_t n = this->random_.Between(0, 200);
    const Steps<T> x = RandomSteps<T>(this->random_, n, false),
                   y = RandomSteps<T>(this->random_, n);
    const DeviceArray<T> device_x(x.data), device_y(y.data);
    T dot{}, expected_dot{};
    Real<T> asum = -1, nrm2 = -1, expected_asum = 0;
    double squares = 0;
    int64_t largest = 0, smallest = 0;
    const auto size = [&](int64_t i) {
      return std::abs(std::real(x[i])) + std::abs(std::imag(x[i]));
    };
    for (int64_t i = 0; i < n; ++i) {
      expected_dot += x[i] * y[i];
      expected_asum += size(i);
      squares += std::norm(x[i]);
      if (i == 0 || size(i) > size(largest - 1)) largest = i + 1;
      if (i == 0 || size(i) < size(smallest - 1)) smallest = i + 1;
    }
    ASSERT_EQ(Vendor<T>::dot(this->handle_, n, V(device_x.get()), x.step, V(device_y.get()), y.step,
                             V(&dot)),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(dot, expected_dot);
    ASSERT_EQ(Vendor<T>::asum(this->handle_, n, V(device_x.get()), x.step, &asum),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(asum, expected_asum);
    ASSERT_EQ(Vendor<T>::nrm2(this->handle_, n, V(device_x.get()), x.step, &nrm2),
              CUBLAS_STATUS_SUCCESS);
    const double rounding = 4 * std::numeric_limits<Real<T>>::epsilon();
    EXPECT_NEAR(nrm2, std::sqrt(squares), rounding * std::sqrt(squares));
    int64_t index = -1;
    ASSERT_EQ(Vendor<T>::iamax(this->handle_, n, V(device_x.get()), x.step, &index),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(index, largest);
    ASSERT_EQ(Vendor<T>::iamin(this->handle_, n, V(device_x.get()), x.step, &index),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(index, smallest);
  }
}

TYPED_TEST(Level1Test, NormsNeitherOverflowNorVanish) {
  using T = TypeParam;
  const Real<T> large = std::numeric_limits<Real<T>>::max() / 4;
  const Real<T> small = std::numeric_limits<Real<T>>::min() * 4;
  for (const Real<T> value : {large, small}) {
    const DeviceArray<T> x({T(value), T(value), T(value), T(value)});
    Real<T> norm = 0;
    ASSERT_EQ(Vendor<T>::nrm2(this->handle_, 4, V(x.get()), 1, &norm), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(norm, 2 * value);
  }
}

using Level1FixedTest = CublasTest;

TEST_F(Level1FixedTest, ConjugatedDot) {
  const DeviceArray<Complex64> x(std::vector<Complex64>{{1, 2}, {3, -1}}),
      y(std::vector<Complex64>{{2, 0}, {0, 1}});
  Complex64 dot;
  ASSERT_EQ(cublasCdotc(handle_, 2, V(x.get()), 1, V(y.get()), 1, V(&dot)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(dot, Complex64(1, -1));
  ASSERT_EQ(cublasCdotu(handle_, 2, V(x.get()), 1, V(y.get()), 1, V(&dot)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(dot, Complex64(3, 7));
}

TEST_F(Level1FixedTest, Rotations) {
  const DeviceArray<double> x({1, 2}), y({3, 4});
  const double c = 2, s = -1;
  ASSERT_EQ(cublasDrot(handle_, 2, x.get(), 1, y.get(), 1, &c, &s), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(x.Read(), (std::vector<double>{-1, 0}));
  EXPECT_EQ(y.Read(), (std::vector<double>{7, 10}));

  double a = 3, b = 4, cosine = 0, sine = 0;
  ASSERT_EQ(cublasDrotg(handle_, &a, &b, &cosine, &sine), CUBLAS_STATUS_SUCCESS);
  EXPECT_DOUBLE_EQ(a, 5);
  EXPECT_DOUBLE_EQ(cosine, 0.6);
  EXPECT_DOUBLE_EQ(sine, 0.8);
  EXPECT_DOUBLE_EQ(b, 1 / 0.6);

  Complex128 za(3, 4), zs;
  Complex128 zb(0, 12);
  double zc = 0;
  const Complex128 old_a = za, old_b = zb;
  ASSERT_EQ(cublasZrotg(handle_, V(&za), V(&zb), &zc, V(&zs)), CUBLAS_STATUS_SUCCESS);
  EXPECT_NEAR(std::abs(zc * old_a + zs * old_b - za), 0, 1e-14);
  EXPECT_NEAR(std::abs(zc * old_b - std::conj(zs) * old_a), 0, 1e-14);
}

// H of rotmg zeroes the second component, whatever branch and scaling was taken; rotm applies it.
TEST_F(Level1FixedTest, ModifiedRotationZeroesTheSecondComponent) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 200; ++round) {
    const auto magnitude = [&] {
      return std::ldexp(1 + random.Between(0, 99) / 100.0, random.Between(-40, 40));
    };
    double d1 = magnitude(), d2 = magnitude(), x1 = magnitude();
    const double y1 = magnitude(), old_x = x1;
    double param[5] = {};
    ASSERT_EQ(cublasDrotmg(handle_, &d1, &d2, &x1, &y1, param), CUBLAS_STATUS_SUCCESS);
    const DeviceArray<double> x({old_x}), y({y1});
    ASSERT_EQ(cublasDrotm(handle_, 1, x.get(), 1, y.get(), 1, param), CUBLAS_STATUS_SUCCESS);
    EXPECT_NEAR(x.Read()[0], x1, 1e-12 * std::abs(x1));
    EXPECT_NEAR(y.Read()[0], 0, 1e-12 * std::max(std::abs(y1 * param[4]), std::abs(y1)));
    EXPECT_LT(d1, 4096.0 * 4096.0);
  }
}

TEST_F(Level1FixedTest, MixedTypes) {
  const std::vector<Half> halves = {ToHalf(1), ToHalf(-2), ToHalf(3)};
  const DeviceArray<Half> x(halves), y(halves);
  const float alpha = 2;
  ASSERT_EQ(cublasAxpyEx(handle_, 3, &alpha, CUDA_R_32F, x.get(), CUDA_R_16F, 1, y.get(),
                         CUDA_R_16F, -1, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const std::vector<Half> sum = y.Read();
  EXPECT_EQ(ToFloat(sum[0]), 1 + 2 * 3);
  EXPECT_EQ(ToFloat(sum[1]), -2 + 2 * -2);
  EXPECT_EQ(ToFloat(sum[2]), 3 + 2 * 1);

  Half dot;
  ASSERT_EQ(cublasDotEx(handle_, 3, x.get(), CUDA_R_16F, 1, x.get(), CUDA_R_16F, 1, &dot,
                        CUDA_R_16F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(ToFloat(dot), 14);
  ASSERT_EQ(cublasScalEx(handle_, 3, &alpha, CUDA_R_32F, x.get(), CUDA_R_16F, 1, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(ToFloat(x.Read()[1]), -4);
  Half asum;
  ASSERT_EQ(cublasAsumEx(handle_, 3, x.get(), CUDA_R_16F, 1, &asum, CUDA_R_16F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(ToFloat(asum), 12);
  int index = 0;
  ASSERT_EQ(cublasIamaxEx(handle_, 3, x.get(), CUDA_R_16F, 1, &index), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(index, 3);
  const DeviceArray<Half> copy(std::vector<Half>(3, ToHalf(0)));
  ASSERT_EQ(cublasCopyEx(handle_, 3, x.get(), CUDA_R_16F, -1, copy.get(), CUDA_R_16F, 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(ToFloat(copy.Read()[0]), 6);
  EXPECT_EQ(cublasDotEx(handle_, 3, x.get(), CUDA_R_4I, 1, x.get(), CUDA_R_16F, 1, &dot, CUDA_R_16F,
                        CUDA_R_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  const DeviceArray<Complex64> z(std::vector<Complex64>{{3, 4}});
  float norm = 0;
  ASSERT_EQ(cublasNrm2Ex(handle_, 1, z.get(), CUDA_C_32F, 1, &norm, CUDA_R_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(norm, 5);
}

}  // namespace
}  // namespace softgpu::cublas

// The kernels that take rows as they come, against their references on random shapes.
#include "kernels/llm/reference.h"
#include "tests/harness/seed.h"
#include "tests/kernels/llm/device.h"
#include "tests/kernels/llm/random_step.h"

namespace kernels::llm {
namespace {

constexpr double kTolerance = 1e-5;

class RowsTest : public ::testing::Test {
 protected:
  size_t Size(int32_t rows, int32_t width) const {
    return static_cast<size_t>(rows) * static_cast<size_t>(width);
  }
  // Runs the kernel and its reference, and compares what they have made of `out`.
  template <typename Make, typename T>
  void Compare(const Make& make, const Array<T>& out, double tolerance = kTolerance) {
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    ASSERT_EQ(Difference(out.host, out.Fetch(), tolerance), "");
  }

  Device device_;
  Random random_{harness::Seed()};
};

TEST_F(RowsTest, Embed) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const RandomRequests requests = MakeRequests(&random_, 5, 40);
    Step step(requests.shapes, requests.tables);
    const int32_t width = random_.Int(1, 600);
    const int32_t vocabulary = random_.Int(1, 50);
    std::vector<int32_t> numbers(static_cast<size_t>(step.rows()));
    std::vector<int32_t> before(static_cast<size_t>(random_.Int(1, 9)));
    for (int32_t& id : before) id = random_.Int(0, vocabulary - 1);
    const int32_t drawn_max = static_cast<int32_t>(before.size());
    for (int32_t& id : numbers)
      id = random_.Chance(30) ? -random_.Int(1, drawn_max) : random_.Int(0, vocabulary - 1);
    Array<int32_t> ids(numbers);
    Array<int32_t> drawn(before);
    Array<float> tokens(random_.Floats(Size(vocabulary, width)));
    Array<float> positions(random_.Floats(Size(40, width)));
    Array<float> out(Size(step.rows(), width));
    const bool with_positions = random_.Chance(50);
    Compare(
        [&](Side side) {
          return Embed{step.On(side),
                       ids.On(side),
                       drawn.On(side),
                       tokens.On(side),
                       with_positions ? positions.On(side) : nullptr,
                       out.On(side),
                       width};
        },
        out);
  }
}

TEST_F(RowsTest, Norms) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 9);
    const int32_t width = random_.Int(1, 1200);
    Array<float> x(random_.Floats(Size(rows, width), random_.Chance(20) ? 100.0f : 1.0f));
    Array<float> added(random_.Floats(Size(rows, width)));
    Array<float> added_bias(random_.Floats(Size(1, width)));
    Array<float> weight(random_.Floats(Size(1, width)));
    Array<float> bias(random_.Floats(Size(1, width)));
    Array<float> out(Size(rows, width));
    const bool adds = random_.Chance(70), with_bias = random_.Chance(50);
    const NormKind kind = random_.Chance(50) ? NormKind::kRms : NormKind::kLayer;
    const auto make = [&](Side side) {
      return Norm{x.On(side),
                  adds ? added.On(side) : nullptr,
                  adds && with_bias ? added_bias.On(side) : nullptr,
                  weight.On(side),
                  with_bias ? bias.On(side) : nullptr,
                  out.On(side),
                  rows,
                  width,
                  1e-5f,
                  kind};
    };
    Compare(make, out);
    ASSERT_EQ(Difference(x.host, x.Fetch(), 1e-6), "") << "in the residual stream";
  }
}

// A mean far from zero takes nothing from the variance's digits.
TEST_F(RowsTest, LayerNormOfShiftedRows) {
  Array<float> x(random_.Floats(1000, 0.01f));
  for (float& value : x.host) value += 100;
  x.Upload();
  Array<float> weight(std::vector<float>(1000, 1.0f));
  Array<float> out(1000);
  Compare(
      [&](Side side) {
        return Norm{x.On(side),   nullptr, nullptr, weight.On(side), nullptr,
                    out.On(side), 1,       1000,    1e-12f,          NormKind::kLayer};
      },
      out, 5e-3);
}

TEST_F(RowsTest, GatherRows) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 12), count = random_.Int(1, 12);
    const int32_t width = random_.Int(1, 600);
    std::vector<int32_t> numbers(static_cast<size_t>(count));
    for (int32_t& row : numbers) row = random_.Int(0, rows - 1);
    Array<int32_t> which(numbers);
    Array<float> from(random_.Floats(Size(rows, width)));
    Array<float> out(Size(count, width));
    Compare(
        [&](Side side) {
          return GatherRows{from.On(side), which.On(side), out.On(side), count, width};
        },
        out, 0);
  }
}

TEST_F(RowsTest, Activations) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 9), width = random_.Int(1, 600);
    const float scale = random_.Chance(20) ? 50.0f : 2.0f;  // so that exponentials overflow
    Array<float> gate_up(random_.Floats(2 * Size(rows, width), scale));
    Array<float> bias(random_.Floats(Size(1, width)));
    Array<float> silu(Size(rows, width));
    Array<float> gelu(Size(rows, width));
    Compare([&](Side side) { return SiluMul{gate_up.On(side), silu.On(side), rows, width}; }, silu);
    const bool with_bias = random_.Chance(50);
    Compare(
        [&](Side side) {
          return Gelu{gate_up.On(side), with_bias ? bias.On(side) : nullptr, gelu.On(side), rows,
                      width};
        },
        gelu);
  }
}

TEST_F(RowsTest, ArgMax) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 9);
    const int32_t width = random_.Chance(20) ? random_.Int(1, 3) : random_.Int(1, 3000);
    Array<float> in(random_.Floats(Size(rows, width)));
    for (float& value : in.host) {
      if (random_.Chance(60)) value = std::round(value);  // many equals
      if (random_.Chance(2)) value = kNan;
      if (random_.Chance(2)) value = -kInfinity;
    }
    const auto first_row = in.host.begin();
    if (random_.Chance(10)) std::fill(first_row, first_row + width, kNan);
    if (random_.Chance(10)) std::fill(first_row, first_row + width, -kInfinity);
    in.Upload();
    Array<int32_t> out(static_cast<size_t>(rows));
    Compare([&](Side side) { return ArgMax{in.On(side), out.On(side), rows, width}; }, out, 0);
  }
}

}  // namespace
}  // namespace kernels::llm

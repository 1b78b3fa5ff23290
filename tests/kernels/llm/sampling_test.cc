// The kernels from logits to tokens, against their references: tokens must be equal, since all that
// decides them is whole numbers.
#include <algorithm>

#include "kernels/llm/philox.h"
#include "kernels/llm/reference.h"
#include "kernels/llm/sampling_rule.h"
#include "tests/harness/seed.h"
#include "tests/kernels/llm/device.h"

namespace kernels::llm {
namespace {

class SamplingTest : public ::testing::Test {
 protected:
  // Some of them equal, infinite or NaN.
  std::vector<float> Logits(int32_t rows, int32_t width) {
    std::vector<float> logits =
        random_.Floats(static_cast<size_t>(rows) * static_cast<size_t>(width), 4);
    const bool ties = random_.Chance(30), holes = random_.Chance(20);
    for (float& logit : logits) {
      if (ties) logit = std::round(logit);
      if (holes && random_.Chance(10)) logit = random_.Chance(50) ? kNan : -kInfinity;
    }
    return logits;
  }
  SamplingRow How(int32_t width) {
    SamplingRow how = {1,
                       1,
                       0,
                       0,
                       static_cast<uint64_t>(random_.Int(0, 1 << 30)) << 20,
                       random_.Int(0, 9999),
                       random_.Int(0, 3)};
    if (random_.Chance(80)) how.temperature = 0.1f * static_cast<float>(random_.Int(0, 20));
    if (random_.Chance(40)) how.top_k = random_.Int(1, width + 5);
    if (random_.Chance(40)) how.top_p = 0.01f * static_cast<float>(random_.Int(1, 100));
    if (random_.Chance(40)) how.min_p = 0.01f * static_cast<float>(random_.Int(0, 100));
    return how;
  }
  // What the kernel draws of these weights; rows of `how.size()`.
  std::vector<int32_t> Drawn(const std::vector<uint32_t>& values,
                             const std::vector<SamplingRow>& rows) {
    Array<uint32_t> weights(values);
    Array<SamplingRow> how(rows);
    Array<int32_t> out(rows.size());
    const int32_t width = static_cast<int32_t>(values.size() / rows.size());
    const auto make = [&](Side side) {
      return SampleToken{weights.On(side), how.On(side), out.On(side),
                         static_cast<int32_t>(rows.size()), width};
    };
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    EXPECT_EQ(out.Fetch(), out.host);
    return out.Fetch();
  }

  Device device_;
  Random random_{harness::Seed()};
};

// The answers that the authors publish with their library.
TEST(PhiloxTest, KnownAnswers) {
  const struct {
    Philox philox;
    uint32_t answer[4];
  } cases[] = {
      {{{0, 0, 0, 0}, {0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (auto [philox, answer] : cases) {
    philox.Run();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(philox.counter[i], answer[i]);
  }
}

TEST_F(SamplingTest, EditLogits) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 6), width = random_.Int(1, 900);
    Array<float> in(random_.Floats(static_cast<size_t>(rows * width), 4));
    Array<float> out(static_cast<size_t>(rows * width));
    std::vector<TokenEdit> edits;
    std::vector<int32_t> starts = {0};
    std::vector<Penalties> values;
    for (int32_t row = 0; row < rows; ++row) {
      for (int32_t token = 0; token < width; ++token) {
        if (!random_.Chance(20)) continue;
        const int32_t generated = random_.Chance(50) ? 0 : random_.Int(1, 5);
        const int32_t appeared = generated > 0 || random_.Chance(50) ? 1 : 0;
        const float bias = random_.Chance(10) ? -kInfinity : random_.Chance(50) ? 0.0f : 3.5f;
        edits.push_back({token, generated, appeared, bias});
      }
      starts.push_back(static_cast<int32_t>(edits.size()));
      values.push_back({random_.Chance(50) ? 1.0f : 1.3f, random_.Chance(50) ? 0.0f : 0.7f,
                        random_.Chance(50) ? 0.0f : -0.4f});
    }
    random_.Shuffle(&values);
    edits.push_back({});  // arrays are never empty
    Array<TokenEdit> edit(edits);
    Array<int32_t> start(starts);
    Array<Penalties> penalties(values);
    const auto make = [&](Side side) {
      return EditLogits{in.On(side),        out.On(side), edit.On(side), start.On(side),
                        penalties.On(side), rows,         width};
    };
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    const std::vector<float> actual = out.Fetch();
    for (size_t i = 0; i < actual.size(); ++i) {
      if (std::isinf(out.host[i])) {
        ASSERT_EQ(actual[i], out.host[i]);
      } else {
        ASSERT_NEAR(actual[i], out.host[i], 1e-5);
      }
    }
  }
}

// Repetition counts tokens of the prompt, the others those of the answer alone.
TEST(EditedTest, PenaltiesOfPromptAndAnswer) {
  const Penalties penalties = {2, 0.5f, 0.25f};
  EXPECT_EQ(Edited(4, {0, 0, 0, 0}, penalties), 4);
  EXPECT_EQ(Edited(4, {0, 0, 1, 0}, penalties), 2);
  EXPECT_EQ(Edited(-4, {0, 0, 1, 0}, penalties), -8);
  EXPECT_EQ(Edited(4, {0, 3, 1, 0}, penalties), 2 - 1.5f - 0.25f);
  EXPECT_EQ(Edited(4, {0, 0, 0, -1}, penalties), 3);
}

TEST_F(SamplingTest, SampleWeights) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 6), width = random_.Int(1, 3000);
    Array<float> logits(Logits(rows, width));
    std::vector<SamplingRow> rows_how(static_cast<size_t>(rows));
    for (SamplingRow& row : rows_how) row = How(width);
    Array<SamplingRow> how(rows_how);
    Array<uint32_t> weights(static_cast<size_t>(rows * width));
    const auto make = [&](Side side) {
      return SampleWeights{logits.On(side), how.On(side), weights.On(side), rows, width};
    };
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    const std::vector<uint32_t> actual = weights.Fetch();
    for (size_t i = 0; i < actual.size(); ++i) {
      const double expected = weights.host[i];
      // A large quotient's error is that of its last digits, times the slope of the exponential.
      ASSERT_NEAR(actual[i], expected, 2 + 2e-5 * expected) << i;
      ASSERT_EQ(actual[i] == kWeightMax, weights.host[i] == kWeightMax) << i;
    }
  }
}

TEST_F(SamplingTest, SampleToken) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 6);
    const int32_t width = random_.Chance(20) ? random_.Int(1, 4) : random_.Int(1, 3000);
    std::vector<uint32_t> weights(static_cast<size_t>(rows * width));
    const bool ties = random_.Chance(40);
    for (uint32_t& weight : weights) {
      weight = kWeightMax >> random_.Int(0, 31);
      if (!ties) weight = static_cast<uint32_t>(random_.Int(0, static_cast<int32_t>(weight - 1)));
      if (random_.Chance(20)) weight = 0;
    }
    for (int32_t row = 0; row < rows; ++row) {  // as the kernel before makes them
      if (random_.Chance(90))
        weights[static_cast<size_t>(row * width + random_.Int(0, width - 1))] = kWeightMax;
    }
    std::vector<SamplingRow> how(static_cast<size_t>(rows));
    for (SamplingRow& row : how) row = How(width);
    Drawn(weights, how);
    if (HasFailure()) return;
  }
}

// Shares of draws are those of the weights. The seed is fixed, so the test always draws the same.
TEST_F(SamplingTest, DrawsFollowTheWeights) {
  constexpr int32_t kDraws = 4000;
  const std::vector<uint32_t> weights = {kWeightMax / 2, 0, kWeightMax, kWeightMax / 2};
  std::vector<uint32_t> repeated;
  std::vector<SamplingRow> how;
  for (int32_t position = 0; position < kDraws; ++position) {
    repeated.insert(repeated.end(), weights.begin(), weights.end());
    how.push_back({1, 1, 0, 0, 42, position, 0});
  }
  std::vector<int> counts(4);
  for (const int32_t token : Drawn(repeated, how)) ++counts[static_cast<size_t>(token)];
  EXPECT_NEAR(counts[0], kDraws / 4, 120);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], kDraws / 2, 140);
  EXPECT_NEAR(counts[3], kDraws / 4, 120);
}

// Which tokens can be drawn at all: 8, 4, 2, 1 and 1 sixteenths, by many positions.
TEST_F(SamplingTest, TokensThatCount) {
  const std::vector<uint32_t> weights = {kWeightMax / 8, kWeightMax, kWeightMax / 4, kWeightMax / 2,
                                         kWeightMax / 8};
  const auto drawn = [&](const SamplingRow& how) {
    std::vector<uint32_t> repeated;
    std::vector<SamplingRow> rows;
    for (int32_t position = 0; position < 120; ++position) {
      repeated.insert(repeated.end(), weights.begin(), weights.end());
      rows.push_back(how);
      rows.back().position = position;
    }
    std::vector<int32_t> tokens = Drawn(repeated, rows);
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens;
  };
  using Tokens = std::vector<int32_t>;
  EXPECT_EQ(drawn({1, 1, 0, 0, 7, 0, 0}), (Tokens{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn({1, 1, 0, 2, 7, 0, 0}), (Tokens{1, 3}));
  EXPECT_EQ(drawn({1, 1, 0, 4, 7, 0, 0}), (Tokens{0, 1, 2, 3, 4}));  // equals of the fourth
  EXPECT_EQ(drawn({1, 0.5f, 0, 0, 7, 0, 0}), (Tokens{1}));
  EXPECT_EQ(drawn({1, 0.51f, 0, 0, 7, 0, 0}), (Tokens{1, 3}));
  EXPECT_EQ(drawn({1, 0.7f, 0, 2, 7, 0, 0}), (Tokens{1, 3}));  // of the two that top_k leaves
  EXPECT_EQ(drawn({1, 0.6f, 0, 2, 7, 0, 0}), (Tokens{1}));
  EXPECT_EQ(drawn({1, 1, 0.25f, 0, 7, 0, 0}), (Tokens{1, 2, 3}));
  EXPECT_EQ(drawn({0, 1, 0, 0, 7, 0, 0}), (Tokens{1}));
}

TEST_F(SamplingTest, Logprobs) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t rows = random_.Int(1, 6), width = random_.Int(1, 3000);
    const int32_t top = random_.Int(1, std::min(width, kTopLogprobsMax));
    Array<float> logits(Logits(rows, width));
    std::vector<int32_t> tokens(static_cast<size_t>(rows));
    for (int32_t row = 0; row < rows; ++row) {
      float& chosen = logits.host[static_cast<size_t>(
          row * width + (tokens[static_cast<size_t>(row)] = random_.Int(0, width - 1)))];
      if (!std::isfinite(chosen)) chosen = 1;
    }
    logits.Upload();
    Array<int32_t> chosen(tokens);
    Array<float> logprob(static_cast<size_t>(rows));
    Array<int32_t> rank(static_cast<size_t>(rows));
    Array<int32_t> top_tokens(static_cast<size_t>(rows * top));
    Array<float> top_logprobs(static_cast<size_t>(rows * top));
    const auto make = [&](Side side) {
      return Logprobs{logits.On(side),
                      chosen.On(side),
                      logprob.On(side),
                      rank.On(side),
                      top_tokens.On(side),
                      top_logprobs.On(side),
                      rows,
                      width,
                      top};
    };
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    ASSERT_EQ(Difference(logprob.host, logprob.Fetch(), 1e-5), "");
    ASSERT_EQ(rank.Fetch(), rank.host);
    ASSERT_EQ(top_tokens.Fetch(), top_tokens.host);
    const std::vector<float> actual = top_logprobs.Fetch();
    for (size_t i = 0; i < actual.size(); ++i) {
      if (std::isinf(top_logprobs.host[i])) {
        ASSERT_EQ(actual[i], top_logprobs.host[i]);
      } else {
        ASSERT_NEAR(actual[i], top_logprobs.host[i], 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace kernels::llm

// How the next token of an answer is drawn, against counts of all tokens.
#include "serve/llm/generation/growing_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

const std::vector<int32_t> kEnds = {2, 5};

GenerationRequest RequestOf(std::vector<int32_t> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.new_max = 100;
  return request;
}

TEST(GrowingAnswerTest, EditsCountTokens) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](int32_t end) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(end));
  };
  for (int round = 0; round < 200; ++round) {
    GenerationRequest request = RequestOf(std::vector<int32_t>(static_cast<size_t>(1 + below(20))));
    std::map<int32_t, kernels::llm::TokenEdit> expected;
    for (int32_t& token : request.prompt) {
      token = below(30);
      expected[token].appeared = 1;
    }
    for (int i = below(4); i > 0; --i) {
      request.sampling.logit_bias.emplace_back(below(30), static_cast<float>(below(9)));
      expected[request.sampling.logit_bias.back().first].bias +=
          request.sampling.logit_bias.back().second;
    }
    request.sampling.presence_penalty = 0.5;
    GrowingAnswer answer(request, 0, kEnds);
    for (int32_t length = 0; length < 30; ++length) {
      const Sampling sampling = answer.NextSampling(false);
      ASSERT_EQ(SamplingFault(sampling, 30), "");
      ASSERT_EQ(sampling.edits.size(), expected.size());
      for (const kernels::llm::TokenEdit& edit : sampling.edits) {
        const kernels::llm::TokenEdit& wanted = expected.at(edit.token);
        ASSERT_TRUE(edit.generated == wanted.generated && edit.appeared == wanted.appeared &&
                    edit.bias == wanted.bias);
      }
      const int32_t token = below(30);
      answer.Append(token);
      expected[token].appeared = 1;
      ++expected[token].generated;
    }
  }
}

TEST(GrowingAnswerTest, NothingIsEditedWithoutPenalties) {
  const GenerationRequest request = RequestOf({1, 2, 3});
  GrowingAnswer answer(request, 0, kEnds);
  answer.Append(4);
  EXPECT_TRUE(answer.NextSampling(false).edits.empty());
}

TEST(GrowingAnswerTest, RandomNumbersAreOfThePositionAndTheAnswer) {
  GenerationRequest request = RequestOf({1, 2, 3});
  request.sampling.seed = 9;
  GrowingAnswer answer(request, 4, kEnds);
  answer.Append(7);
  const kernels::llm::SamplingRow how = answer.NextSampling(false).how;
  EXPECT_EQ(how.seed, 9u);
  EXPECT_EQ(how.position, 4);
  EXPECT_EQ(how.copy, 4);
}

// A request that goes ahead draws its tokens as if the token before were known.
TEST(GrowingAnswerTest, ATokenAheadIsDrawnAsIfTheOneBeforeWereKnown) {
  GenerationRequest request = RequestOf({1, 2, 3});
  request.sampling.min_tokens = 2;
  request.sampling.logit_bias.emplace_back(5, 1.0f);
  GrowingAnswer answer(request, 1, kEnds);
  for (int i = 0; i < 4; ++i) {
    const Sampling ahead = answer.NextSampling(true);
    answer.Append(7);
    const Sampling known = answer.NextSampling(false);
    EXPECT_EQ(ahead.how.position, known.how.position);
    ASSERT_EQ(ahead.edits.size(), known.edits.size());
    for (size_t edit = 0; edit < known.edits.size(); ++edit) {
      EXPECT_EQ(ahead.edits[edit].token, known.edits[edit].token);
      EXPECT_EQ(ahead.edits[edit].bias, known.edits[edit].bias);
    }
  }
}

bool IsForbidden(const GrowingAnswer& answer, int32_t token) {
  const Sampling sampling = answer.NextSampling(false);
  return std::any_of(sampling.edits.begin(), sampling.edits.end(),
                     [token](const kernels::llm::TokenEdit& edit) {
                       return edit.token == token && std::isinf(edit.bias);
                     });
}

TEST(GrowingAnswerTest, NoTokenStopsAnAnswerThatIsTooShort) {
  GenerationRequest request = RequestOf({1});
  request.sampling.min_tokens = 2;
  request.sampling.stop_tokens = {8};
  GrowingAnswer answer(request, 0, kEnds);
  for (int i = 0; i < 2; ++i) {
    for (const int32_t token : {2, 5, 8}) {
      EXPECT_TRUE(IsForbidden(answer, token));
      EXPECT_FALSE(answer.StopsAt(token));
    }
    answer.Append(3);
  }
  for (const int32_t token : {2, 5, 8}) {
    EXPECT_FALSE(IsForbidden(answer, token));
    EXPECT_TRUE(answer.StopsAt(token));
  }
  EXPECT_FALSE(answer.StopsAt(3));
}

TEST(GrowingAnswerTest, TheModelsOwnMarksMayBeIgnored) {
  GenerationRequest request = RequestOf({1});
  request.sampling.ignore_eos = true;
  request.sampling.stop_tokens = {8};
  request.sampling.min_tokens = 1;
  GrowingAnswer answer(request, 0, kEnds);
  EXPECT_FALSE(IsForbidden(answer, 2));
  answer.Append(2);
  EXPECT_FALSE(answer.StopsAt(2));
  EXPECT_TRUE(answer.StopsAt(8));
}

TEST(GrowingAnswerTest, TokensAreOfPromptAndAnswer) {
  const GenerationRequest request = RequestOf({1, 2, 3});
  GrowingAnswer answer(request, 0, kEnds);
  answer.Append(4);
  answer.Append(5);
  EXPECT_EQ(answer.Tokens(0, 5), (std::vector<int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(answer.Tokens(2, 2), (std::vector<int32_t>{3, 4}));
}

}  // namespace
}  // namespace serve::llm

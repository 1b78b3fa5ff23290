// What of a request's sampling is refused, and what of it the kernels get.
#include "serve/llm/stage/sampling_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace serve::llm {
namespace {

constexpr int32_t kVocabulary = 100;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string WhyRefused(const std::function<void(Sampling*)>& change) {
  Sampling sampling;
  change(&sampling);
  return SamplingFault(sampling, kVocabulary);
}

TEST(SamplingBatchTest, WhatMakesSenseIsTaken) {
  EXPECT_EQ(WhyRefused([](Sampling*) {}), "");
  EXPECT_EQ(WhyRefused([](Sampling* s) { s->how = {2, 0.5f, 1, 5, 1, 2, 3}; }), "");
  EXPECT_EQ(WhyRefused([](Sampling* s) { s->penalties = {0.5f, -2, 2}; }), "");
  EXPECT_EQ(WhyRefused([](Sampling* s) { s->edits = {{0, 1, 1, 0}, {99, 0, 0, -INFINITY}}; }), "");
  EXPECT_EQ(WhyRefused([](Sampling* s) { s->top_logprobs = 20; }), "");
}

TEST(SamplingBatchTest, NumbersOutOfBoundsAreRefused) {
  for (const float wrong : {-0.1f, INFINITY, kNan})
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->how.temperature = wrong; }), "") << wrong;
  for (const float wrong : {0.0f, 1.1f, kNan})
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->how.top_p = wrong; }), "") << wrong;
  for (const float wrong : {-0.1f, 1.1f, kNan})
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->how.min_p = wrong; }), "") << wrong;
  for (const float wrong : {0.0f, -1.0f, INFINITY, kNan})
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->penalties.repetition = wrong; }), "") << wrong;
  for (const float wrong : {INFINITY, kNan}) {
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->penalties.frequency = wrong; }), "") << wrong;
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->penalties.presence = wrong; }), "") << wrong;
    EXPECT_NE(WhyRefused([&](Sampling* s) { s->edits = {{0, 0, 0, wrong}}; }), "") << wrong;
  }
  EXPECT_NE(WhyRefused([](Sampling* s) { s->how.top_k = -1; }), "");
  EXPECT_NE(WhyRefused([](Sampling* s) { s->top_logprobs = 21; }), "");
  EXPECT_NE(WhyRefused([](Sampling* s) { s->top_logprobs = -2; }), "");
}

// Two edits of one logit would race, and one beyond the vocabulary would write elsewhere.
TEST(SamplingBatchTest, EditsOfOneTokenOrNoneAreRefused) {
  EXPECT_NE(WhyRefused([](Sampling* s) { s->edits = {{5, 0, 0, 1}, {5, 0, 0, 1}}; }), "");
  EXPECT_NE(WhyRefused([](Sampling* s) { s->edits = {{-1, 0, 0, 1}}; }), "");
  EXPECT_NE(WhyRefused([](Sampling* s) { s->edits = {{kVocabulary, 0, 0, 1}}; }), "");
}

TEST(SamplingBatchTest, NoMoreLogprobsThanTokens) {
  Sampling sampling;
  sampling.top_logprobs = 3;
  EXPECT_EQ(SamplingFault(sampling, 3), "");
  EXPECT_NE(SamplingFault(sampling, 2), "");
}

TEST(SamplingBatchTest, RowsFollowEachOther) {
  SamplingBatch batch;
  Sampling first, second, third;
  first.edits = {{1, 0, 0, 1}, {2, 0, 0, 1}};
  second.top_logprobs = 4;
  third.edits = {{7, 0, 0, 1}};
  batch.Add(first);
  batch.Add(second);
  EXPECT_TRUE(batch.greedy);
  third.how.temperature = 1;
  batch.Add(third);
  EXPECT_FALSE(batch.greedy);
  batch.Add(first);
  EXPECT_FALSE(batch.greedy);
  EXPECT_EQ(batch.edits_start, (std::vector<int32_t>{0, 2, 2, 3, 5}));
  EXPECT_EQ(batch.edits[2].token, 7);
  EXPECT_EQ(batch.how.size(), 4u);
  EXPECT_EQ(batch.top_logprobs, 4);
}

}  // namespace
}  // namespace serve::llm

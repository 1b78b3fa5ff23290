// What a step's plan becomes for the device, against a walk over its requests, and what is refused.
#include "serve/llm/stage/packed_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/llm/step_place.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

constexpr BatchLimits kLimits = {200, 8, 300, 50, 1000};

BatchRequest RequestOf(int32_t count, int32_t length, std::vector<int32_t> blocks) {
  BatchRequest request;
  request.tokens.assign(static_cast<size_t>(count), 7);
  request.length = length;
  request.blocks = std::move(blocks);
  request.samples = {Sampling()};
  return request;
}

std::string WhyRefused(const BatchRequest& request) {
  const std::vector<BatchRequest> requests = {request};
  return std::string(PackUntrusted(requests, {}, kLimits).status().message());
}

TEST(PackedBatchTest, RowsAreFoundAgain) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](int32_t end) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(end));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<BatchRequest> requests(static_cast<size_t>(1 + below(8)));
    for (BatchRequest& request : requests) {
      request.tokens.resize(static_cast<size_t>(1 + below(25)));
      for (int32_t& token : request.tokens) token = below(kLimits.vocabulary);
      request.length = static_cast<int32_t>(request.tokens.size()) + below(200);
      request.blocks.resize(static_cast<size_t>((request.length + 15) / 16 + below(3)));
      for (int32_t& block : request.blocks) block = below(kLimits.blocks);
      request.samples.resize(static_cast<size_t>(below(2)));
    }
    const absl::StatusOr<PackedBatch> batch = PackUntrusted(requests, {}, kLimits);
    ASSERT_TRUE(batch.ok()) << batch.status().message();
    const kernels::llm::StepRows rows = {batch->start.data(), batch->length.data(),
                                         batch->table.data(), batch->requests(),
                                         batch->rows(),       batch->table_width};
    int32_t row = 0;
    std::vector<int32_t> sampled;
    for (size_t i = 0; i < requests.size(); ++i) {
      const int32_t before = requests[i].length - static_cast<int32_t>(requests[i].tokens.size());
      for (size_t token = 0; token < requests[i].tokens.size(); ++token, ++row) {
        const int32_t position = before + static_cast<int32_t>(token);
        const kernels::llm::Place place = kernels::llm::PlaceOf(rows, row);
        ASSERT_EQ(batch->ids[static_cast<size_t>(row)], requests[i].tokens[token]);
        ASSERT_EQ(place.request, static_cast<int32_t>(i));
        ASSERT_EQ(place.position, position);
        ASSERT_EQ(kernels::llm::SlotOf(rows, place.request, position),
                  requests[i].blocks[static_cast<size_t>(position / 16)] * 16 + position % 16);
      }
      sampled.insert(sampled.end(), requests[i].samples.size(), row - 1);
    }
    EXPECT_EQ(batch->sampled, sampled);
  }
}

TEST(PackedBatchTest, NothingIsNoFault) {
  const absl::StatusOr<PackedBatch> batch = PackUntrusted({}, {}, kLimits);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->rows(), 0);
  EXPECT_EQ(batch->start, std::vector<int32_t>{0});
}

TEST(PackedBatchTest, RequestsOutOfBoundsAreRefused) {
  EXPECT_EQ(WhyRefused(RequestOf(3, 16, {1})), "");
  EXPECT_NE(WhyRefused(RequestOf(3, 17, {1})), "");  // too few blocks
  EXPECT_NE(WhyRefused(RequestOf(3, 2, {1})), "");   // shorter than what is computed
  EXPECT_NE(WhyRefused(RequestOf(0, 2, {1})), "");   // nothing to compute
  EXPECT_NE(WhyRefused(RequestOf(1, 1, {50})), "");  // no such block
  EXPECT_NE(WhyRefused(RequestOf(1, 1, {-1})), "");
  EXPECT_NE(WhyRefused(RequestOf(1, 301, std::vector<int32_t>(19, 0))), "");  // no such position
  BatchRequest request = RequestOf(1, 1, {0});
  request.tokens = {kLimits.vocabulary};
  EXPECT_NE(WhyRefused(request), "");
  request.tokens = {-1};
  EXPECT_NE(WhyRefused(request), "");
}

TEST(PackedBatchTest, ARequestFollowsATokenOfTheStepBefore) {
  BatchRequest request = RequestOf(1, 9, {0});
  request.follows = 2;
  EXPECT_NE(WhyRefused(request), "") << "the step before drew none";
  BatchLimits limits = kLimits;
  limits.drawn = 3;
  const std::vector<BatchRequest> requests = {RequestOf(2, 2, {1}), request};
  const absl::StatusOr<PackedBatch> batch = PackUntrusted(requests, {}, limits);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->ids.at(2), -3);
  for (const int32_t beyond : {3, 1 << 30}) {
    request.follows = beyond;
    EXPECT_FALSE(PackUntrusted(std::vector<BatchRequest>{request}, {}, limits).ok());
  }
  request = RequestOf(2, 9, {0});
  request.follows = 0;
  EXPECT_FALSE(PackUntrusted(std::vector<BatchRequest>{request}, {}, limits).ok());
}

TEST(PackedBatchTest, StepsOutOfBoundsAreRefused) {
  const BatchRequest request = RequestOf(100, 100, std::vector<int32_t>(7, 0));
  EXPECT_TRUE(PackUntrusted(std::vector<BatchRequest>(2, request), {}, kLimits).ok());
  EXPECT_FALSE(PackUntrusted(std::vector<BatchRequest>(3, request), {}, kLimits).ok());
  const BatchRequest small = RequestOf(1, 1, {0});
  EXPECT_TRUE(PackUntrusted(std::vector<BatchRequest>(8, small), {}, kLimits).ok());
  EXPECT_FALSE(PackUntrusted(std::vector<BatchRequest>(9, small), {}, kLimits).ok());
}

// Answers to one prompt are drawn from its last row, each in its own way.
TEST(PackedBatchTest, ARowDrawsSeveralTokens) {
  std::vector<BatchRequest> requests = {RequestOf(3, 3, {0}), RequestOf(2, 2, {1})};
  requests[0].samples.resize(7);
  requests[0].samples[6].how.copy = 6;
  const absl::StatusOr<PackedBatch> batch = PackUntrusted(requests, {}, kLimits);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->sampled, (std::vector<int32_t>{2, 2, 2, 2, 2, 2, 2, 4}));
  EXPECT_EQ(batch->sampling.how[6].copy, 6);
  requests[0].samples.resize(8);
  EXPECT_FALSE(PackUntrusted(requests, {}, kLimits).ok());
}

TEST(PackedBatchTest, CopiesKeepTheirOrder) {
  const std::vector<std::pair<int32_t, int32_t>> copies = {{3, 4}, {4, 49}};
  EXPECT_EQ(PackUntrusted({}, copies, kLimits)->copies, (std::vector<int32_t>{3, 4, 4, 49}));
  const std::vector<std::pair<int32_t, int32_t>> beyond = {{3, 50}};
  EXPECT_FALSE(PackUntrusted({}, beyond, kLimits).ok());
}

}  // namespace
}  // namespace serve::llm

// The kernels that know pages of keys and values, against their references on random shapes, and
// the bits of attention whatever else a step computes.
#include "kernels/llm/reference.h"
#include "kernels/llm/reference_half.h"
#include "kernels/llm/step_place.h"
#include "tests/harness/seed.h"
#include "tests/kernels/llm/random_step.h"

namespace kernels::llm {
namespace {

struct Heads {
  int32_t kv = 1;
  int32_t queries = 1;
  int32_t width = 1;

  size_t OfToken() const { return static_cast<size_t>(kv) * static_cast<size_t>(width); }
};

Heads MakeHeads(Random* random) {
  const int32_t kv = random->Int(1, 3);
  const int32_t widths[] = {4, 8, 32, 40, 64, 96, 128, kHeadWidthMax};
  return {kv, kv * random->Int(1, 6), widths[random->Int(0, 7)]};
}

size_t PoolElements(int32_t blocks, const Heads& heads) {
  return static_cast<size_t>(blocks) * static_cast<size_t>(kBlockTokens) * heads.OfToken();
}

class AttentionTest : public ::testing::Test {
 protected:
  template <typename Kv>
  void CompareRopeStore(KvType type, double tolerance);
  template <typename Kv>
  void CompareAttention(KvType type);

  Device device_;
  Random random_{harness::Seed()};
};

// Against a walk over the requests.
TEST_F(AttentionTest, PlaceOfRows) {
  for (int shape = 0; shape < 100; ++shape) {
    const RandomRequests requests = MakeRequests(&random_, 6, 70);
    Step step(requests.shapes, requests.tables);
    const StepRows rows = step.On(Side::kHost);
    int32_t row = 0;
    for (size_t request = 0; request < requests.shapes.size(); ++request) {
      for (int32_t i = 0; i < requests.shapes[request].count; ++i, ++row) {
        const int32_t position = requests.shapes[request].before + i;
        ASSERT_EQ(PlaceOf(rows, row).request, static_cast<int32_t>(request));
        ASSERT_EQ(PlaceOf(rows, row).position, position);
        const int32_t block = requests.tables[request][static_cast<size_t>(position / 16)];
        ASSERT_EQ(SlotOf(rows, static_cast<int32_t>(request), position),
                  block * 16 + position % 16);
      }
    }
  }
}

// Also that nothing but the step's places is written: the pools are NaN before.
template <typename Kv>
void AttentionTest::CompareRopeStore(KvType type, double tolerance) {
  const RandomRequests requests = MakeRequests(&random_, 5, 70);
  Step step(requests.shapes, requests.tables);
  const Heads heads = MakeHeads(&random_);
  const size_t rows = static_cast<size_t>(step.rows());
  const size_t all =
      static_cast<size_t>(heads.queries + 2 * heads.kv) * static_cast<size_t>(heads.width);
  const int32_t rotated = random_.Chance(15) ? 0 : 2 * random_.Int(1, heads.width / 2);
  Array<float> qkv(random_.Floats(rows * all));
  Array<float> bias(random_.Floats(all));
  Array<float> q_norm(random_.Floats(static_cast<size_t>(heads.width)));
  Array<float> k_norm(random_.Floats(static_cast<size_t>(heads.width)));
  Array<float> turns(random_.Floats(70 * static_cast<size_t>(std::max(rotated, 1)), 0.5f));
  Array<float> q(rows * static_cast<size_t>(heads.queries * heads.width));
  const size_t pool = PoolElements(requests.blocks, heads);
  Array<Kv> keys(std::vector<Kv>(pool, static_cast<Kv>(kNan)));
  Array<Kv> values(std::vector<Kv>(pool, static_cast<Kv>(kNan)));
  const bool with_bias = random_.Chance(50), with_norms = random_.Chance(50);
  const RopePairs pairs = random_.Chance(50) ? RopePairs::kNeighbours : RopePairs::kHalves;
  const auto make = [&](Side side) {
    return RopeStore{step.On(side),
                     qkv.On(side),
                     with_bias ? bias.On(side) : nullptr,
                     with_norms ? q_norm.On(side) : nullptr,
                     with_norms ? k_norm.On(side) : nullptr,
                     rotated > 0 ? turns.On(side) : nullptr,
                     q.On(side),
                     {keys.On(side), values.On(side), type},
                     heads.queries,
                     heads.kv,
                     heads.width,
                     rotated,
                     pairs,
                     1e-5f};
  };
  device_.Run(make(Side::kDevice));
  Reference(make(Side::kHost));
  ASSERT_EQ(Difference(q.host, q.Fetch(), 2e-5), "") << "in the queries";
  ASSERT_EQ(Difference(keys.host, keys.Fetch(), tolerance), "") << "in the keys";
  ASSERT_EQ(Difference(values.host, values.Fetch(), tolerance), "") << "in the values";
}

TEST_F(AttentionTest, RopeStore) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    if (shape % 2 == 0) CompareRopeStore<float>(KvType::kFloat, 2e-5);
    if (shape % 2 == 1) CompareRopeStore<Half>(KvType::kHalf, 2e-3);
    if (HasFatalFailure()) return;
  }
}

// Keys and values for each token of each request, NaN in all other places.
template <typename Kv>
std::vector<Kv> RandomPool(const RandomRequests& requests, const Heads& heads, Random* random) {
  std::vector<Kv> pool(PoolElements(requests.blocks, heads), static_cast<Kv>(kNan));
  for (size_t request = 0; request < requests.shapes.size(); ++request) {
    for (int32_t position = 0; position < requests.shapes[request].Length(); ++position) {
      const int32_t block = requests.tables[request][static_cast<size_t>(position / kBlockTokens)];
      const size_t slot = static_cast<size_t>(block * kBlockTokens + position % kBlockTokens);
      const std::vector<float> token = random->Floats(heads.OfToken());
      for (size_t i = 0; i < token.size(); ++i)
        pool[slot * token.size() + i] = static_cast<Kv>(token[i]);
    }
  }
  return pool;
}

template <typename Kv>
void AttentionTest::CompareAttention(KvType type) {
  const RandomRequests requests = MakeRequests(&random_, 4, random_.Chance(20) ? 700 : 60);
  Step step(requests.shapes, requests.tables);
  const Heads heads = MakeHeads(&random_);
  const size_t elements =
      static_cast<size_t>(step.rows()) * static_cast<size_t>(heads.queries * heads.width);
  Array<Kv> keys(RandomPool<Kv>(requests, heads, &random_));
  Array<Kv> values(RandomPool<Kv>(requests, heads, &random_));
  Array<float> q(random_.Floats(elements));
  Array<float> out(elements);
  // With the greater factor one key has nearly all the weight.
  const float scale =
      (random_.Chance(20) ? 30.0f : 1.0f) / std::sqrt(static_cast<float>(heads.width));
  const auto make = [&](Side side) {
    return PagedAttention{step.On(side), q.On(side),    {keys.On(side), values.On(side), type},
                          out.On(side),  heads.queries, heads.kv,
                          heads.width,   scale};
  };
  device_.Run(make(Side::kDevice));
  Reference(make(Side::kHost));
  ASSERT_EQ(Difference(out.host, out.Fetch(), 5e-5), "");
}

TEST_F(AttentionTest, Attention) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    if (shape % 2 == 0) CompareAttention<float>(KvType::kFloat);
    if (shape % 2 == 1) CompareAttention<Half>(KvType::kHalf);
    if (HasFatalFailure()) return;
  }
}

// One request's rows have the same bits alone, in chunks, and beside others, wherever its blocks
// lie in the pool.
TEST_F(AttentionTest, BitsDependOnTheRequestAlone) {
  const Heads heads = {2, 4, 64};
  const auto blocks_of = [](int32_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; };
  const size_t row_elements = static_cast<size_t>(heads.queries * heads.width);
  for (int shape = 0; shape < std::max(harness::kSanitized ? 1 : 4, Shapes() / 10); ++shape) {
    RandomRequests requests = MakeRequests(&random_, 3, 300);
    requests.shapes[0] = {0, random_.Int(1, 600)};  // computed whole
    const int32_t length = requests.shapes[0].Length();
    requests.tables[0].clear();
    for (int32_t i = 0; i < blocks_of(length); ++i) requests.tables[0].push_back(requests.blocks++);
    random_.Shuffle(&requests.tables[0]);
    Array<float> keys(RandomPool<float>(requests, heads, &random_));
    Array<float> values(RandomPool<float>(requests, heads, &random_));
    const auto attend = [&](Step* step, const std::vector<float>& queries) {
      Array<float> q(queries);
      Array<float> out(queries.size());
      device_.Run(PagedAttention{step->On(Side::kDevice),
                                 q.On(Side::kDevice),
                                 {keys.On(Side::kDevice), values.On(Side::kDevice), KvType::kFloat},
                                 out.On(Side::kDevice),
                                 heads.queries,
                                 heads.kv,
                                 heads.width,
                                 0.125f});
      return out.Fetch();
    };
    Step together(requests.shapes, requests.tables);
    const std::vector<float> q =
        random_.Floats(static_cast<size_t>(together.rows()) * row_elements);
    const std::vector<float> expected = attend(&together, q);
    for (int32_t first = 0; first < length;) {
      const int32_t count = random_.Int(1, std::min(200, length - first));
      Step alone({{first, count}}, {requests.tables[0]});
      const auto begin =
          q.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(first) * row_elements);
      const auto end = begin + static_cast<ptrdiff_t>(static_cast<size_t>(count) * row_elements);
      const std::vector<float> actual = attend(&alone, {begin, end});
      for (size_t i = 0; i < actual.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]),
                  std::bit_cast<uint32_t>(expected[static_cast<size_t>(first) * row_elements + i]))
            << "token " << first << ", element " << i;
      first += count;
    }
  }
}

TEST_F(AttentionTest, CopyBlocks) {
  for (int shape = 0; shape < Shapes(); ++shape) {
    const int32_t blocks = random_.Int(2, 12), pools = random_.Int(1, 5);
    const int32_t block_bytes = 16 * random_.Int(1, 700);
    const int64_t pool_bytes = int64_t{blocks} * block_bytes;
    std::vector<char> bytes(static_cast<size_t>(pools * pool_bytes));
    for (char& byte : bytes) byte = static_cast<char>(random_.Int(-128, 127));
    Array<char> pool(bytes);
    std::vector<int32_t> pairs;
    for (int32_t copy = random_.Int(1, 8); copy > 0; --copy) {
      pairs.push_back(random_.Int(0, blocks - 1));
      pairs.push_back(random_.Int(0, blocks - 1));
    }
    Array<int32_t> copies(pairs);
    const auto make = [&](Side side) {
      return CopyBlocks{pool.On(side), copies.On(side), static_cast<int32_t>(pairs.size() / 2),
                        pools,         pool_bytes,      block_bytes};
    };
    device_.Run(make(Side::kDevice));
    Reference(make(Side::kHost));
    ASSERT_EQ(pool.host, pool.Fetch());
  }
}

}  // namespace
}  // namespace kernels::llm

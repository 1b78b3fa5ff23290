// What nvcc makes of kernels whose threads meet, diverge or end early.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "tests/harness/events.h"
#include "tests/softgpu/exec/nvcc_kernels.h"

namespace softgpu::testing {
namespace {

class NvccThreads : public NvccKernels {};

TEST_P(NvccThreads, AssertNamesTheThread) {
  std::vector<int> values(64);
  values[37] = -1;
  const std::optional<Fault> fault = machine.Run("k_assert", {1}, {64}, machine.Upload(values));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ASSERT);
  EXPECT_EQ(fault->thread.x, 37u);
  EXPECT_NE(machine.printed.find("values[threadIdx.x] >= 0"), std::string::npos) << machine.printed;
}

TEST_P(NvccThreads, TrapNamesTheThread) {
  const std::optional<Fault> fault = machine.Run("k_trap", {3}, {64}, 40);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(fault->thread.x, 40u);
  EXPECT_GT(fault->line, 0);
}

TEST_P(NvccThreads, DivergentLoops) {
  const uint64_t out = machine.Allocate(400);
  MustRun("k_collatz", {1}, {100}, out);
  const std::vector<int> got = machine.Download<int>(out, 100);
  for (int i = 0; i < 100; ++i) {
    int v = i * 37, steps = 0;
    for (; v != 1 && steps < 1000 && v > 0; ++steps) v = (v & 1) != 0 ? 3 * v + 1 : v / 2;
    EXPECT_EQ(got[i], steps) << i;
  }
}

TEST_P(NvccThreads, LocalArrays) {
  const uint64_t out = machine.Allocate(400);
  MustRun("k_local", {1}, {100}, out, 50);
  const std::vector<int> got = machine.Download<int>(out, 100);
  for (int t = 0; t < 100; ++t) {
    int sum = 0;
    for (int i = 0; i < 50; ++i) sum += ((i * 7 + t) & 63) * 50 + t;
    EXPECT_EQ(got[t], sum) << t;
  }
}

TEST_P(NvccThreads, NamedBarriers) {
  const uint64_t out = machine.Allocate(256);
  MustRun("k_named_barriers", {1}, {128}, out);
  const std::vector<int> got = machine.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], (63 - i) * (63 - i));
}

TEST_P(NvccThreads, VotingBarriers) {
  const uint64_t out = machine.Allocate(1200);
  for (const int limit : {0, 37, 100}) {
    MustRun("k_vote_barrier", {1}, {100}, out, limit);
    const std::vector<int> got = machine.Download<int>(out, 300);
    for (int t = 0; t < 100; ++t) {
      EXPECT_EQ(got[t * 3], limit);
      EXPECT_EQ(got[t * 3 + 1] != 0, limit == 100);
      EXPECT_EQ(got[t * 3 + 2] != 0, limit > 0);
    }
  }
}

TEST_P(NvccThreads, WarpFunctions) {
  const uint64_t out = machine.Allocate(64 * 32);
  MustRun("k_warp", {1}, {64}, out);
  const std::vector<uint32_t> got = machine.Download<uint32_t>(out, 64 * 8);
  for (uint32_t t = 0; t < 64; ++t) {
    const uint32_t lane = t % 32;
    const uint32_t* r = &got[t * 8];
    EXPECT_EQ(r[0], 0x49249249u);
    EXPECT_EQ(r[1], 3u);
    uint32_t same = 0;
    for (uint32_t l = 0; l < 32; ++l) same |= uint32_t{l / 5 == lane / 5} << l;
    EXPECT_EQ(r[2], same);
    EXPECT_EQ(r[3], 496u);
    EXPECT_EQ(r[4], lane % 8 >= 3 ? lane - 3 : lane);
    EXPECT_EQ(r[5], (lane & 16) | ((lane + 1) & 15));
    EXPECT_EQ(r[6], lane % 2 == 1 ? 0 : (lane + 2 < 32 ? lane + 2 : lane) + 1600);
    EXPECT_EQ(static_cast<int>(r[7]), -9);
  }
}

TEST_P(NvccThreads, WarpBarrierAcrossPaths) {
  const uint64_t out = machine.Allocate(128);
  MustRun("k_syncwarp", {1}, {32}, out);
  const std::vector<int> got = machine.Download<int>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? (i + 16) * 2 : i - 16);
}

TEST_P(NvccThreads, SpinLockInsideAWarpMakesProgress) {
  const uint64_t lock = machine.Allocate(4), counter = machine.Allocate(4);
  // Unoptimised loops keep their variables in memory, and are not taken for waits.
  const int threads = harness::kSanitized ? 16 : 64;
  MustRun("k_spinlock", {2}, {static_cast<unsigned>(threads)}, lock, counter);
  EXPECT_EQ(machine.Download<int>(counter, 1)[0], 2 * threads);
}

TEST_P(NvccThreads, TensorCore) {
  std::vector<uint16_t> a(256), b(128);
  const uint16_t small[] = {0x0000, 0x3c00, 0x4000, 0x4200,
                            0xbc00, 0x3800, 0xc000};  // 0 1 2 3 -1 .5 -2
  const double value[] = {0, 1, 2, 3, -1, 0.5, -2};
  for (int i = 0; i < 256; ++i) a[i] = small[i * 5 % 7];
  for (int i = 0; i < 128; ++i) b[i] = small[(i * 3 + i / 8) % 7];
  const uint64_t da = machine.Upload(a), db = machine.Upload(b), dc = machine.Allocate(512);
  MustRun("k_mma", {1}, {32}, da, db, dc);
  const std::vector<float> c = machine.Download<float>(dc, 128);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = 0;
      for (int k = 0; k < 16; ++k) {
        const int i = row * 16 + k, j = k * 8 + column;
        sum += value[i * 5 % 7] * value[(j * 3 + j / 8) % 7];
      }
      EXPECT_EQ(c[row * 8 + column], sum) << row << " " << column;
    }
  }
}

TEST_P(NvccThreads, GridBarrier) {
  const int n = 20 * 64;
  const uint64_t data = machine.Upload(std::vector<int>(n));
  machine.cooperative = true;
  MustRun("k_grid_sync", {20}, {64}, data, n);
  EXPECT_EQ(machine.Download<int>(data, n), std::vector<int>(n, 4));
}

TEST_P(NvccThreads, Integers64) {
  const int n = 512;
  std::vector<int64_t> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<int64_t>(random());
    b[i] = static_cast<int64_t>(random()) >> (i % 60);
  }
  b[3] = 0;
  const uint64_t da = machine.Upload(a), db = machine.Upload(b), out = machine.Allocate(n * 64);
  MustRun("k_int64", {4}, {128}, da, db, out, n);
  const std::vector<int64_t> got = machine.Download<int64_t>(out, n * 8);
  for (int i = 0; i < n; ++i) {
    const int64_t* r = &got[i * 8];
    EXPECT_EQ(r[0],
              static_cast<int64_t>(static_cast<uint64_t>(a[i]) * static_cast<uint64_t>(b[i])));
    EXPECT_EQ(r[1], b[i] == 0 ? 0 : a[i] / b[i]);
    EXPECT_EQ(r[2], b[i] == 0 ? 0 : a[i] % b[i]);
    EXPECT_EQ(r[3], static_cast<int64_t>((static_cast<__int128>(a[i]) * b[i]) >> 64));
    EXPECT_EQ(r[4], a[i] >> (b[i] & 63));
    EXPECT_EQ(r[5], static_cast<int64_t>(static_cast<uint64_t>(a[i]) >> (b[i] & 63)));
    EXPECT_EQ(r[6], __builtin_popcountll(a[i]) + 100 * (b[i] == 0 ? 64 : __builtin_clzll(b[i])));
    EXPECT_EQ(r[7], std::min(a[i], b[i]));
  }
}

TEST_P(NvccThreads, EndlessLoopHonoursCancel) {
  const uint64_t flag = machine.Allocate(4);
  std::thread canceller([&] { machine.cancel = true; });
  const std::optional<Fault> fault = machine.Run("k_endless", {4}, {64}, flag);
  canceller.join();
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_FAILED);
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvccThreads, ::testing::Values("80", "90", "80_debug"));

}  // namespace
}  // namespace softgpu::testing

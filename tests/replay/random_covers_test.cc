// What a launch is said to overwrite, against the interpreter: random kernels write all of it,
// and what was there before changes nothing. And a parameter that may be given another address may
// be: the kernel then does there what it did before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "replay/launch_ranges.h"
#include "softgpu/exec/launch.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/replay/kernel_buffers.h"
#include "tests/replay/parsed_kernel.h"
#include "tests/replay/random_kernel.h"

namespace replay {
namespace {

using testing::Buffers;
using testing::kBuffers;

class Everything final : public softgpu::Memory {
 public:
  bool ContainsOutsideWindow(uint64_t, uint64_t) const override { return false; }
  Range AllocationAt(uint64_t) const override { return {}; }
  std::string Near(uint64_t) const override { return ""; }
};

using Bytes = std::vector<std::byte>;

// Parameters never point at the last buffer: it is where memory moves to.
constexpr int kPlaces = kBuffers - 1;

class CoverTrial {
 public:
  CoverTrial(uint64_t seed, const Buffers& buffers)
      : random_(seed),
        buffers_(buffers),
        text_(testing::RandomKernel(seed, true).Text()),
        parsed_(text_) {
    for (int k = 0; k < kBuffers; ++k) {
      parameters_.push_back(buffers.Begin(static_cast<int>(random_() % kPlaces)) +
                            8 * (random_() % 32));
    }
    parameters_.push_back(buffers.Begin(0) + 512);
    parameters_.push_back(buffers.Begin(1) + 256);
    parameters_.push_back(random_() % 40);
    parameters_.push_back(random_() % 32);
    if (random_() % 2 == 0) block_ = {8, 2, 1};
    buffers.Fill(&random_);
    before_ = Now();
  }

  // Empty when what was found out holds.
  std::string Run() {
    const KernelAccess access = Analyse(parsed_.kernel());
    const Memory memory = {.allocation = [this](uint64_t a) { return buffers_.At(a); },
                           .variable = [](uint32_t) { return std::nullopt; },
                           .movable = [](uint64_t) { return true; }};
    said_ = TouchesOf(access, {.blocks = {2, 1, 1}, .threads = {block_.x, block_.y, 1}},
                      std::as_bytes(std::span(parameters_)), memory);
    if (!said_.unknown.empty()) return "";
    const Bytes after = Do(before_, parameters_);
    if (const std::string wrong = CheckCovers(after); !wrong.empty()) return wrong;
    return CheckMoves(after);
  }

  size_t covered() const { return said_.covers.size(); }
  bool moved() const { return moved_; }
  const std::string& text() const { return text_; }

 private:
  Bytes Now() const { return {buffers_.data(), buffers_.data() + Buffers::bytes()}; }
  size_t IndexOf(uint64_t address) const { return address - buffers_.Begin(0); }

  Bytes Do(const Bytes& before, const std::vector<uint64_t>& parameters) {
    std::memcpy(buffers_.data(), before.data(), before.size());
    const Everything memory;
    softgpu::Launch launch;
    launch.kernel = &parsed_.kernel();
    launch.grid = {2, 1, 1};
    launch.block = block_;
    launch.parameters = std::as_bytes(std::span(parameters));
    launch.memory = &memory;
    if (const auto fault = softgpu::Execute(launch)) fault_ = fault->ToString();
    return Now();
  }

  // A byte that stays as it was differs, and so does the result of a load of such a byte.
  std::string CheckCovers(const Bytes& after) {
    Bytes other = before_;
    for (const Range& range : said_.covers) {
      for (uint64_t at = range.begin; at < range.end(); ++at) other[IndexOf(at)] ^= std::byte{0xff};
    }
    return Compare(Do(other, parameters_), after, "with other bytes before");
  }

  std::string CheckMoves(const Bytes& after) {
    const uint32_t parameter = 8 * static_cast<uint32_t>(random_() % (kBuffers + 2));
    uint64_t begin = ~uint64_t{0}, end = 0;
    for (const ParameterTouch& each : said_.by_parameter) {
      if (each.parameter != parameter) continue;
      begin = std::min(begin, each.touch.range.begin);
      end = std::max(end, each.touch.range.end());
    }
    for (const ParameterTouch& each : said_.by_parameter) {
      const bool apart = each.touch.range.end() <= begin || end <= each.touch.range.begin;
      if (each.parameter != parameter && !apart) return "";
    }
    if (begin >= end) return "";
    moved_ = true;
    // Addresses keep their place within 512 bytes.
    const uint64_t to = buffers_.Begin(kPlaces) + begin % 512;
    Bytes moved = before_, expected = after;
    for (uint64_t k = 0; k < end - begin; ++k) {
      moved[IndexOf(to + k)] = before_[IndexOf(begin + k)];
      expected[IndexOf(to + k)] = after[IndexOf(begin + k)];
      expected[IndexOf(begin + k)] = before_[IndexOf(begin + k)];
    }
    std::vector<uint64_t> parameters = parameters_;
    parameters[parameter / 8] += to - begin;
    return Compare(Do(moved, parameters), expected, "with parameter moved");
  }

  std::string Compare(const Bytes& bytes, const Bytes& expected, const char* when) const {
    if (!fault_.empty()) return "it faults: " + fault_;
    for (size_t k = 0; k < bytes.size(); ++k) {
      if (bytes[k] == expected[k]) continue;
      return std::string(when) + ": byte " + std::to_string(k % (2 * testing::kBufferBytes)) +
             " of buffer " + std::to_string(k / (2 * testing::kBufferBytes)) + " differs";
    }
    return "";
  }

  std::mt19937_64 random_;
  const Buffers& buffers_;
  const std::string text_;
  const testing::ParsedKernel parsed_;
  std::vector<uint64_t> parameters_;
  softgpu::Dim3 block_{16, 1, 1};
  Bytes before_;
  LaunchTouches said_;
  std::string fault_;
  bool moved_ = false;
};

TEST(RandomCoversTest, WhatIsCoveredIsWrittenAndNotReadFirst) {
  const uint64_t seed = harness::Seed(), count = harness::Events(100'000, 1'000);
  const Buffers buffers;
  uint64_t covered = 0, moved = 0;
  for (uint64_t k = 0; k < count; ++k) {
    CoverTrial trial(seed + k, buffers);
    const std::string wrong = trial.Run();
    ASSERT_EQ(wrong, "") << "LANEWAY_TEST_SEED=" << seed + k << " LANEWAY_TEST_EVENTS=1\n"
                         << trial.text();
    covered += trial.covered() == 0 ? 0 : 1;
    moved += trial.moved() ? 1 : 0;
  }
  std::printf("%" PRIu64 " kernels, %" PRIu64 " cover something, %" PRIu64 " were moved\n", count,
              covered, moved);
  if (count < 1000) return;
  EXPECT_GT(covered, count / 10);
  EXPECT_GT(moved, count / 10);
}

}  // namespace
}  // namespace replay

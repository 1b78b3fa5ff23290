// The analysis against the interpreter: what a random kernel is seen to touch lies within what the
// analysis says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/mutex.h"
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
using testing::kBufferBytes;
using testing::kBuffers;

// Finds nothing allocated, so that the checked mode asks for each access and reports each place.
class Watch final : public softgpu::Memory {
 public:
  bool ContainsOutsideWindow(uint64_t, uint64_t) const override { return false; }
  Range AllocationAt(uint64_t address) const override {
    base::MutexLock lock(&mutex_);
    addresses_.push_back(address);
    return {};
  }
  std::string Near(uint64_t) const override { return ""; }

  mutable base::Mutex mutex_;
  mutable std::vector<uint64_t> addresses_;
};

// One kernel, analysed and run.
class Trial {
 public:
  Trial(uint64_t seed, const Buffers& buffers)
      : random_(seed),
        buffers_(buffers),
        text_(testing::RandomKernel(seed).Text()),
        parsed_(text_) {
    for (int k = 0; k < kBuffers; ++k) {
      parameters_.push_back(buffers.Begin(static_cast<int>(random_() % kBuffers)) +
                            8 * (random_() % 32));
    }
    parameters_.push_back(buffers.Begin(0) + 512);
    parameters_.push_back(buffers.Begin(1) + 256);
    parameters_.push_back(random_() % 32);
    parameters_.push_back(random_() % 32);
    buffers.Fill(&random_);
  }

  // Empty when the analysis holds.
  std::string Run() {
    const KernelAccess access = Analyse(parsed_.kernel());
    const Memory memory = {.allocation = [this](uint64_t a) { return buffers_.At(a); },
                           .variable = [](uint32_t) { return std::nullopt; }};
    const std::span<const std::byte> bytes = std::as_bytes(std::span(parameters_));
    const LaunchTouches said =
        TouchesOf(access, {.blocks = {2, 1, 1}, .threads = {16, 1, 1}}, bytes, memory);
    unknown_ = !said.unknown.empty();
    if (unknown_) return "";
    touches_ = said.touches;
    return Compare();
  }

  bool unknown() const { return unknown_; }
  const std::string& text() const { return text_; }

 private:
  // Nothing when the analysis does not say that the address is touched.
  std::optional<scheduler::streams::Access> AccessAt(uint64_t address) const {
    for (const Touch& touch : touches_) {
      if (address >= touch.range.begin && address < touch.range.end()) return touch.access;
    }
    return std::nullopt;
  }
  bool MayRead(uint64_t address) const {
    const auto access = AccessAt(address);
    return access && *access != scheduler::streams::Access::kWrite;
  }
  bool MayWrite(uint64_t address) const {
    const auto access = AccessAt(address);
    return access && *access != scheduler::streams::Access::kRead;
  }

  std::string Compare() {
    const std::vector<std::byte> before(buffers_.data(), buffers_.data() + Buffers::bytes());
    std::string wrong;
    Watch watch;
    softgpu::Launch launch;
    launch.kernel = &parsed_.kernel();
    launch.grid = {2, 1, 1};
    launch.block = {16, 1, 1};
    launch.parameters = std::as_bytes(std::span(parameters_));
    launch.memory = &watch;
    launch.report = [&](const softgpu::Finding& finding) {
      base::MutexLock lock(&watch.mutex_);
      if (finding.kind == softgpu::Finding::Kind::kBounds) wrong += CheckUse(finding);
    };
    if (const auto fault = softgpu::Execute(launch)) return "it faults: " + fault->ToString();
    for (uint64_t address : watch.addresses_) {
      if (!AccessAt(address)) return "it touches " + Place(address);
    }
    for (size_t k = 0; k < before.size(); ++k) {
      const uint64_t address = reinterpret_cast<uint64_t>(buffers_.data() + k);
      if (buffers_.data()[k] == before[k] || MayWrite(address)) continue;
      return "it writes " + Place(address);
    }
    return wrong;
  }

  // The first access of each place of the kernel: "global memory at 0x..., thread reads 4 bytes".
  std::string CheckUse(const softgpu::Finding& finding) const {
    const size_t at = finding.text.find("global memory at 0x");
    if (at == std::string::npos) return "";
    const uint64_t address = std::strtoull(finding.text.c_str() + at + 17, nullptr, 16);
    const bool reads = finding.text.find(" reads ") != std::string::npos;
    if (reads ? MayRead(address) : MayWrite(address)) return "";
    return (reads ? "it reads " : "it writes ") + Place(address);
  }

  std::string Place(uint64_t address) const {
    const uint64_t offset = address - buffers_.Begin(0);
    return "byte " + std::to_string(offset % (2 * kBufferBytes)) + " of buffer " +
           std::to_string(offset / (2 * kBufferBytes)) + ", which the analysis does not say";
  }

  std::mt19937_64 random_;
  const Buffers& buffers_;
  const std::string text_;
  const testing::ParsedKernel parsed_;
  std::vector<uint64_t> parameters_;
  std::vector<Touch> touches_;
  bool unknown_ = false;
};

TEST(RandomKernelsTest, TheAnalysisNeverSaysTooLittle) {
  const uint64_t seed = harness::Seed(), count = harness::Events(100'000, 1'000);
  const Buffers buffers;
  uint64_t unknown = 0;
  for (uint64_t k = 0; k < count; ++k) {
    Trial trial(seed + k, buffers);
    const std::string wrong = trial.Run();
    ASSERT_EQ(wrong, "") << "LANEWAY_TEST_SEED=" << seed + k << "\n" << trial.text();
    unknown += trial.unknown() ? 1 : 0;
  }
  std::printf("%llu of %llu kernels are not known\n", static_cast<unsigned long long>(unknown),
              static_cast<unsigned long long>(count));
  EXPECT_LT(unknown, count / 2);
}

}  // namespace
}  // namespace replay

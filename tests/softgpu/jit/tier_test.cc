// From interpreted to compiled while a program runs, and from the cache at once.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>

#include "softgpu/jit/compiler.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

// Adds up the numbers below n in every thread; `extra` makes texts differ.
std::string Sum(const std::string& extra) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 out, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %i, %n, %s, %t;
  .reg .b64 %at;
  ld.param.u64 %at, [out];
  ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %at, %t, 4, %at;
  mov.u32 %i, 0;
  mov.u32 %s, )" +
         extra + R"(;
TOP:
  add.u32 %s, %s, %i;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra TOP;
  st.global.u32 [%at], %s;
  ret;
}
)";
}

class TierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/softgpu-tier-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    cache_ = path;
    setenv("XDG_CACHE_HOME", path, 1);
  }
  void TearDown() override { std::filesystem::remove_all(cache_); }

  // Loads `extra`'s kernel anew and launches it once.
  void Launch(Machine* machine, uint32_t extra, uint32_t n) {
    const uint64_t out = machine->Allocate(128);
    const std::optional<Fault> fault = machine->Run("sum", {1}, {32}, out, n);
    ASSERT_FALSE(fault.has_value()) << fault->ToString();
    const uint32_t sum = static_cast<uint32_t>(uint64_t{n} * (n - 1) / 2) + extra;
    EXPECT_EQ(machine->Download<uint32_t>(out, 32), std::vector<uint32_t>(32, sum));
  }

  std::string cache_;
};

TEST_F(TierTest, AHotKernelIsCompiledWhileItsLaunchesGoOn) {
  Machine machine;
  jit::UseExecutor(jit::Executor::kAuto, false);
  machine.Load(Sum("5"));
  const uint64_t before = jit::CompiledLaunches();
  Launch(&machine, 5, 100);
  EXPECT_EQ(jit::CompiledLaunches(), before) << "the first launch is interpreted";
  // Whoever compiles gives way to all others.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (jit::CompiledLaunches() == before && std::chrono::steady_clock::now() < deadline)
    Launch(&machine, 5, 100'000);
  EXPECT_GT(jit::CompiledLaunches(), before);
  Launch(&machine, 5, 100'000);
  jit::UseExecutor(jit::Executor::kInterpreter, false);
}

TEST_F(TierTest, ACachedKernelIsCompiledFromItsFirstLaunch) {
  Machine machine;
  jit::UseExecutor(jit::Executor::kLlvm, true);
  machine.Load(Sum("6"));
  Launch(&machine, 6, 100);
  jit::UseExecutor(jit::Executor::kAuto, true);
  machine.Load(Sum("6"));
  const uint64_t before = jit::CompiledLaunches();
  Launch(&machine, 6, 100);
  EXPECT_EQ(jit::CompiledLaunches(), before + 1);
  machine.Load(Sum("7"));
  Launch(&machine, 7, 100);
  EXPECT_EQ(jit::CompiledLaunches(), before + 1) << "another kernel is not in the cache";
  jit::UseExecutor(jit::Executor::kInterpreter, false);
}

TEST_F(TierTest, AProcessExitsWhileItsKernelIsCompiled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_early = [this] {
    Machine machine;
    jit::UseExecutor(jit::Executor::kAuto, false);
    std::string text = Sum("8");
    std::string work;  // long to compile
    for (int k = 0; k < 500; ++k) work += "xor.b32 %t, %t, %i;\nmad.lo.u32 %t, %t, %s, %n;\n";
    text.insert(text.find("TOP:") + 4, "\n" + work);
    machine.Load(text);
    for (int k = 0; k < 8; ++k) Launch(&machine, 8, 10'000);  // hot by then
    std::exit(0);
  };
  EXPECT_EXIT(exit_early(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace softgpu::testing

// check=1 and watchdog=MS through the driver: what a program's user reads on stderr.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

// What `body` says on stderr in a process of its own, which ends by exit().
std::string StderrOf(const char* config, void (*body)()) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  std::fflush(stdout);  // or the child says it again
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("LANEWAY_SOFTGPU", config, 1);
    body();
    std::exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

// One thread copies a word from `in` to `out`.
constexpr char kCopy[] =
    ".visible .entry copy(.param .u64 in, .param .u64 out) {\n.reg .b32 %r0; .reg .b64 %l<2>;\n"
    "ld.param.u64 %l0, [in]; ld.param.u64 %l1, [out];\n.loc 1 12 0\nld.global.u32 %r0, [%l0];\n"
    "st.global.u32 [%l1], %r0;\nret; }\n.file 1 \"copy.cu\"\n";
constexpr char kSpin[] = ".visible .entry spin() {\nAGAIN: bra AGAIN; }\n";

CUfunction Load(const char* kernel, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  cuModuleLoadData(&module, (std::string(kHeader) + kernel).c_str());
  cuModuleGetFunction(&function, module, name);
  return function;
}

void Copy(bool initialise, bool free) {
  CUcontext context = nullptr;
  cuInit(0);
  cuCtxCreate(&context, nullptr, 0, 0);
  CUdeviceptr in = 0, out = 0;
  cuMemAlloc(&in, 1000);
  cuMemAlloc(&out, 64);
  if (initialise) cuMemsetD8(in, 0, 1000);
  const CUfunction copy = Load(kCopy, "copy");
  void* params[] = {&in, &out};
  for (int i = 0; i < 3; ++i) cuLaunchKernel(copy, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
  cuCtxSynchronize();
  cuMemFree(out);
  if (free) cuMemFree(in);
}

TEST(CheckTest, SaysOnceWhatIsWrongAndCountsAtExit) {
  const std::string text = StderrOf("check=1", [] { Copy(false, false); });
  const size_t found = text.find("softgpu check: uninitialised global memory at 0x");
  ASSERT_NE(found, std::string::npos) << text;
  EXPECT_EQ(text.find("uninitialised global", found + 20), std::string::npos) << text;
  EXPECT_NE(text.find("reads 4 bytes of it at copy.cu:12 (PTX line 8)"), std::string::npos) << text;
  EXPECT_NE(text.find("softgpu check: leak of 1000 bytes of device memory"), std::string::npos);
  EXPECT_NE(text.find("softgpu check: 1 uninitialised read, 1 leak\n"), std::string::npos) << text;
}

TEST(CheckTest, HasNothingToSayOfGoodPrograms) {
  EXPECT_EQ(StderrOf("check=1", [] { Copy(true, true); }), "softgpu check: no findings\n");
  EXPECT_EQ(StderrOf("", [] { Copy(false, false); }), "");
}

TEST(CheckTest, WatchdogIsAFaultLikeOthers) {
  const std::string text = StderrOf("watchdog=50", [] {
    CUcontext context = nullptr;
    cuInit(0);
    cuCtxCreate(&context, nullptr, 0, 0);
    cuLaunchKernel(Load(kSpin, "spin"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
    if (cuCtxSynchronize() != CUDA_ERROR_LAUNCH_TIMEOUT) std::fprintf(stderr, "not in time\n");
    if (cuCtxSynchronize() != CUDA_ERROR_LAUNCH_TIMEOUT) std::fprintf(stderr, "not sticky\n");
  });
  EXPECT_NE(text.find("kernel spin, block (0,0,0), thread (0,0,0), PTX line 5: the grid ran longer "
                      "than the watchdog's 50 ms"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("not "), std::string::npos) << text;
}

}  // namespace
}  // namespace softgpu::testing

// check=1 and watchdog=MS through the driver: what a program's user reads on stderr.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

// What `body` says on stderr in a process of its own, which ends by exit(), and what that gives.
std::string StderrOf(const char* config, void (*body)(), int* code = nullptr) {
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
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  if (code != nullptr) *code = WEXITSTATUS(status);
  return text;
}

// One thread copies a word from `in` to `out`.
constexpr char kCopy[] =
    ".visible .entry _Z4copyPiS_(.param .u64 in, .param .u64 out) {\n.reg .b32 %r0; .reg .b64 "
    "%l<2>;\n"
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
  const CUfunction copy = Load(kCopy, "_Z4copyPiS_");
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
  EXPECT_NE(text.find("\n    allocated by "), std::string::npos) << text;
  EXPECT_NE(text.find("softgpu check: 1 uninitialised read in 3 launches, 1 leak\n"),
            std::string::npos)
      << text;
}

// The words behind 1000 bytes belong to nobody, though the page is there.
TEST(CheckTest, NamesTheAllocationThatAnAccessMisses) {
  const std::string text = StderrOf("check=1", [] {
    CUcontext context = nullptr;
    cuInit(0);
    cuCtxCreate(&context, nullptr, 0, 0);
    CUdeviceptr in = 0, out = 0;
    cuMemAlloc(&in, 1000);
    cuMemAlloc(&out, 64);
    cuMemsetD8(in, 0, 1000);
    CUdeviceptr behind = in + 1008;
    void* params[] = {&behind, &out};
    const CUfunction function = Load(kCopy, "_Z4copyPiS_");
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
    cuCtxSynchronize();
    cuMemFree(in);
    params[0] = &in;
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
    cuCtxSynchronize();
    cuMemFree(out);
  });
  EXPECT_NE(text.find("softgpu check: out of bounds in global memory at 0x"), std::string::npos);
  EXPECT_NE(text.find(", 8 bytes behind 1000 bytes of device memory at 0x"), std::string::npos);
  EXPECT_NE(text.find("thread (0,0,0) reads 4 bytes there at copy.cu:12"), std::string::npos);
  EXPECT_NE(text.find("in kernel copy(int*, int*), block"), std::string::npos) << text;
  EXPECT_NE(text.find("1 access out of bounds in 2 launches\n"), std::string::npos) << text;
}

TEST(CheckTest, EndsWithTheCodeThatIsAskedFor) {
  int code = -1;
  StderrOf(
      "check=1,check_exit=86", [] { Copy(false, true); }, &code);
  EXPECT_EQ(code, 86);
  StderrOf(
      "check=1,check_exit=86", [] { Copy(true, true); }, &code);
  EXPECT_EQ(code, 0);
  StderrOf(
      "check=1", [] { Copy(false, true); }, &code);
  EXPECT_EQ(code, 0);
}

// Nothing can be freed after a fault, so what is left is no leak.
TEST(CheckTest, CountsAFaultAndNoLeaksAfterIt) {
  const std::string text = StderrOf("check=1", [] {
    CUcontext context = nullptr;
    cuInit(0);
    cuCtxCreate(&context, nullptr, 0, 0);
    CUdeviceptr in = 8, out = 0;
    cuMemAlloc(&out, 64);
    void* params[] = {&in, &out};
    cuLaunchKernel(Load(kCopy, "_Z4copyPiS_"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
    cuCtxSynchronize();
  });
  EXPECT_NE(text.find("softgpu check: 1 fault\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("leak"), std::string::npos) << text;
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

// Nobody sets the condition, so the node goes on.
TEST(CheckTest, WatchdogEndsAWhileNode) {
  const std::string text = StderrOf("watchdog=50", [] {
    CUcontext context = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    cuInit(0);
    cuCtxCreate(&context, nullptr, 0, 0);
    cuGraphCreate(&graph, 0);
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    cuGraphConditionalHandleCreate(&params.conditional.handle, graph, nullptr, 1,
                                   CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNode node = nullptr;
    cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params);
    cuGraphInstantiate(&exec, graph, 0);
    cuGraphLaunch(exec, nullptr);
    if (cuCtxSynchronize() != CUDA_ERROR_LAUNCH_TIMEOUT) std::fprintf(stderr, "not in time\n");
  });
  EXPECT_NE(text.find("a while node of a graph ran longer than the watchdog's 50 ms"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("not in time"), std::string::npos) << text;
}

}  // namespace
}  // namespace softgpu::testing

// Copies, fills and stream memory operations whose memory is gone when the stream reaches them: the
// device faults with 700, as it does for a kernel, and says which stream and which address. Each
// test is a process of its own, since a fault is the process's.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>

#include "softgpu/driver/extension.h"
#include "tests/softgpu/virtual_memory.h"

namespace softgpu::testing {
namespace {

constexpr size_t kExtent = size_t{2} << 20;

// A stream that is held until Go(), and memory that goes away before that.
struct Scene {
  CUstream stream = nullptr;
  CUdeviceptr flag = 0, safe = 0, lost = 0;

  void Go() {
    EXPECT_OK(cuMemUnmap(lost, kExtent));
    std::atomic_ref<int>(*reinterpret_cast<int*>(flag)).store(1);
  }
};

Scene MakeScene() {
  Scene scene;
  CUcontext context = nullptr;
  EXPECT_OK(cuInit(0));
  EXPECT_OK(cuCtxCreate(&context, nullptr, 0, 0));
  EXPECT_OK(cuMemAllocManaged(&scene.flag, 4, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<volatile int*>(scene.flag) = 0;
  EXPECT_OK(cuMemAlloc(&scene.safe, 1 << 20));
  EXPECT_OK(cuMemAddressReserve(&scene.lost, kExtent, 0, kHint, 0));
  EXPECT_OK(cuMemMap(scene.lost, kExtent, 0, Create(kExtent), 0));
  EXPECT_OK(Open(scene.lost, kExtent));
  EXPECT_OK(cuStreamCreate(&scene.stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamWaitValue32(scene.stream, scene.flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  return scene;
}

using Submit = std::function<CUresult(const Scene&)>;

// What a child that does this ends with: 0 when the fault is told as it should be.
int FaultOf(const Submit& submit) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("LANEWAY_SOFTGPU", "", 1);
    Scene scene = MakeScene();
    if (::testing::Test::HasFailure() || submit(scene) != CUDA_SUCCESS) _exit(1);
    scene.Go();
    if (cuStreamSynchronize(scene.stream) != CUDA_ERROR_ILLEGAL_ADDRESS) _exit(2);
    if (cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS) _exit(3);
    const auto get_fault =
        reinterpret_cast<decltype(&softgpuGetFault)>(dlsym(RTLD_DEFAULT, "softgpuGetFault"));
    CUstream stream = nullptr;
    const char* text = nullptr;
    if (get_fault(&stream, &text) != CUDA_ERROR_ILLEGAL_ADDRESS) _exit(4);
    if (stream != scene.stream) _exit(5);
    char address[32];
    std::snprintf(address, sizeof address, "0x%llx", scene.lost + 4096);
    if (std::string(text).find(address) == std::string::npos) _exit(6);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(AccessTest, CopyFromMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              return cuMemcpyDtoDAsync(scene.safe, scene.lost + 4096, 64, scene.stream);
            }),
            0);
}

TEST(AccessTest, CopyToMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              static const char bytes[64] = {};
              return cuMemcpyHtoDAsync(scene.lost + 4096, bytes, 64, scene.stream);
            }),
            0);
}

TEST(AccessTest, RowsOfMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              CUDA_MEMCPY2D copy = {};
              copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
              copy.srcDevice = scene.lost + 4096;
              copy.dstDevice = scene.safe;
              copy.srcPitch = 512;
              copy.dstPitch = 128;
              copy.WidthInBytes = 64;
              copy.Height = 8;
              return cuMemcpy2DAsync(&copy, scene.stream);
            }),
            0);
}

TEST(AccessTest, FillOfMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              return cuMemsetD32Async(scene.lost + 4096, 7, 1024, scene.stream);
            }),
            0);
}

TEST(AccessTest, WordWrittenToMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              return cuStreamWriteValue64(scene.stream, scene.lost + 4096, 7, 0);
            }),
            0);
}

TEST(AccessTest, WordAwaitedInMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              return cuStreamWaitValue32(scene.stream, scene.lost + 4096, 7,
                                         CU_STREAM_WAIT_VALUE_EQ);
            }),
            0);
}

TEST(AccessTest, GraphOverMemoryThatIsGone) {
  EXPECT_EQ(FaultOf([](const Scene& scene) {
              CUcontext context = nullptr;
              CUgraph graph = nullptr;
              CUgraphNode node = nullptr;
              CUgraphExec exec = nullptr;
              cuCtxGetCurrent(&context);
              EXPECT_OK(cuGraphCreate(&graph, 0));
              const CUDA_MEMSET_NODE_PARAMS fill = {scene.lost + 4096, 0, 7, 4, 16, 1};
              EXPECT_OK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context));
              EXPECT_OK(cuGraphInstantiate(&exec, graph, 0));
              return cuGraphLaunch(exec, scene.stream);
            }),
            0);
}

// What can be told at the call is no fault: the process goes on.
TEST(AccessTest, AddressWithoutMemoryIsRefusedAtTheCall) {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
  const CUdeviceptr nowhere = kHint + (CUdeviceptr{64} << 20);
  EXPECT_EQ(cuMemcpy(memory, nowhere, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAsync(nowhere, memory, 8, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD(memory, nowhere, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(nowhere, 0, 8), CUDA_ERROR_INVALID_VALUE);
  // A span that wraps around is no short one.
  EXPECT_EQ(cuMemsetD2D32(memory, ~size_t{3}, 0, 1, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32(memory, 0, (size_t{1} << 62) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
}

}  // namespace
}  // namespace softgpu::testing

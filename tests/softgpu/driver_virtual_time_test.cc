// A device in virtual time (LANEWAY_SOFTGPU=timing=FILE): events tell the table's times, whatever
// the machine does, and kernels compute as they do in real time.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

// Times that add up in the head: a start takes 2 us of the front end and 2 us of its own.
constexpr char kTable[] = R"(
device host_bytes_per_ns 1
device bytes_per_ns 1
kernel empty * 10 0.5
kernel store * 20 1
kernel increment 1x1x1 5 1 skip
)";

class VirtualTimeTest : public DriverTest {
 protected:
  static void SetUpTestSuite() {
    // Tests run beside each other: another process would read a table that is half written.
    std::ofstream(TablePath()) << kTable;
    setenv("LANEWAY_SOFTGPU", ("timing=" + TablePath()).c_str(), 1);
  }
  static void TearDownTestSuite() { std::remove(TablePath().c_str()); }

  static std::string TablePath() {
    return ::testing::TempDir() + "/virtual_time_test." + std::to_string(getpid()) + ".table";
  }

  void SetUp() override {
    DriverTest::SetUp();
    empty_ = Kernel(kEmpty, "empty");
    store_ = Kernel(kStore, "store");
    for (CUstream* const stream : {&stream_, &other_}) {
      ASSERT_OK(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    }
    for (CUevent* const event : {&begin_, &end_, &edge_}) ASSERT_OK(cuEventCreate(event, 0));
    ASSERT_OK(cuMemAlloc(&word_, 4));
  }

  void Store(unsigned value, CUstream stream) {
    EXPECT_OK(Launch(store_, {&word_, &value}, stream));
  }
  void After(CUstream stream, CUstream before) {
    EXPECT_OK(cuEventRecord(edge_, before));
    EXPECT_OK(cuStreamWaitEvent(stream, edge_, 0));
  }
  double ElapsedUs() {
    float milliseconds = -1;
    EXPECT_OK(cuEventSynchronize(end_));
    EXPECT_OK(cuEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e3;
  }
  // What `issue` takes on stream_.
  template <class Issue>
  double Time(const Issue& issue) {
    EXPECT_OK(cuEventRecord(begin_, stream_));
    issue();
    EXPECT_OK(cuEventRecord(end_, stream_));
    return ElapsedUs();
  }

  CUfunction empty_ = nullptr, store_ = nullptr;
  CUstream stream_ = nullptr, other_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr, edge_ = nullptr;
  CUdeviceptr word_ = 0;
};

TEST_F(VirtualTimeTest, TheNameOfTheDeviceSaysSo) {
  char name[64] = "";
  ASSERT_OK(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "Laneway Software GPU (virtual time)");
}

TEST_F(VirtualTimeTest, KernelsOfOneStreamTakeTheSumOfTheirTimesInEveryRun) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_FLOAT_EQ(Time([this] {
                      EXPECT_OK(Launch(empty_, {}, stream_));
                      Store(7, stream_);
                    }),
                    12 + 22);
  }
  unsigned value = 0;
  ASSERT_OK(cuMemcpyDtoH(&value, word_, 4));
  EXPECT_EQ(value, 7u) << "kernels run";
}

TEST_F(VirtualTimeTest, KernelsOfTwoStreamsRunBesideEachOther) {
  EXPECT_FLOAT_EQ(Time([this] {
                    After(other_, stream_);
                    EXPECT_OK(Launch(empty_, {}, stream_));
                    EXPECT_OK(Launch(empty_, {}, other_));
                    After(stream_, other_);
                  }),
                  2 + 12);
}

TEST_F(VirtualTimeTest, AWaitForWhatIsReallyDoneCountsInVirtualTime) {
  CUstream told = nullptr;
  std::atomic<bool> done = false;
  ASSERT_OK(cuStreamCreate(&told, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventRecord(begin_, stream_));
  Store(1, other_);
  After(told, other_);
  ASSERT_OK(cuLaunchHostFunc(
      told, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &done));
  // Without a call of the driver, which would be a wait in virtual time.
  while (!done) std::this_thread::yield();
  ASSERT_OK(cuStreamWaitEvent(stream_, edge_, 0));
  ASSERT_OK(Launch(empty_, {}, stream_));
  ASSERT_OK(cuEventRecord(end_, stream_));
  EXPECT_FLOAT_EQ(ElapsedUs(), 22 + 12);
}

TEST_F(VirtualTimeTest, TheLegacyStreamAndBlockingStreamsFollowEachOther) {
  CUstream blocking = nullptr;
  ASSERT_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_OK(cuEventRecord(begin_, nullptr));
  ASSERT_OK(Launch(empty_, {}, blocking));
  ASSERT_OK(Launch(empty_, {}, nullptr));
  ASSERT_OK(Launch(empty_, {}, blocking));
  ASSERT_OK(cuEventRecord(end_, blocking));
  EXPECT_FLOAT_EQ(ElapsedUs(), 36);
}

TEST_F(VirtualTimeTest, CopiesOfBothWaysRunBesideEachOtherAndOfOneWayDoNot) {
  constexpr size_t kBytes = 10'000;
  void* host = nullptr;
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemHostAlloc(&host, 2 * kBytes, 0));
  ASSERT_OK(cuMemAlloc(&device, 2 * kBytes));
  EXPECT_FLOAT_EQ(Time([&] {
                    After(other_, stream_);
                    EXPECT_OK(cuMemcpyHtoDAsync(device, host, kBytes, stream_));
                    EXPECT_OK(cuMemcpyDtoHAsync(host, device + kBytes, kBytes, other_));
                    After(stream_, other_);
                  }),
                  12);
  EXPECT_FLOAT_EQ(Time([&] {
                    After(other_, stream_);
                    EXPECT_OK(cuMemcpyHtoDAsync(device, host, kBytes, stream_));
                    EXPECT_OK(cuMemcpyHtoDAsync(device + kBytes, host, kBytes, other_));
                    After(stream_, other_);
                  }),
                  24);
}

TEST_F(VirtualTimeTest, TheHostsWaitIsWhereItsClockGoesOn) {
  ASSERT_OK(cuEventRecord(begin_, stream_));
  ASSERT_OK(Launch(empty_, {}, other_));
  ASSERT_OK(cuStreamSynchronize(other_));
  ASSERT_OK(cuEventRecord(end_, stream_));
  EXPECT_FLOAT_EQ(ElapsedUs(), 12);
}

TEST_F(VirtualTimeTest, NodesOfAGraphBeginByTheirEdges) {
  for (const bool chained : {false, true}) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_OK(cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = empty_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    CUgraphNode first = nullptr, second = nullptr;
    ASSERT_OK(cuGraphAddKernelNode(&first, graph, nullptr, 0, &params));
    ASSERT_OK(cuGraphAddKernelNode(&second, graph, &first, chained ? 1 : 0, &params));
    ASSERT_OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_FLOAT_EQ(Time([&] { EXPECT_OK(cuGraphLaunch(exec, stream_)); }), chained ? 24 : 14);
    // Launches of one executable graph follow each other on all streams.
    EXPECT_FLOAT_EQ(Time([&] {
                      After(other_, stream_);
                      EXPECT_OK(cuGraphLaunch(exec, other_));
                      EXPECT_OK(cuGraphLaunch(exec, stream_));
                    }),
                    chained ? 48 : 28);
    ASSERT_OK(cuGraphExecDestroy(exec));
    ASSERT_OK(cuGraphDestroy(graph));
  }
}

TEST_F(VirtualTimeTest, GraphsWithConditionalNodesAreRefused) {
  CUgraph graph = nullptr;
  ASSERT_OK(cuGraphCreate(&graph, 0));
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.size = 1;
  ASSERT_OK(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, nullptr, 0, 0));
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  CUgraphExec exec = nullptr;
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&exec, graph, 0));
  ASSERT_OK(cuGraphDestroy(graph));
}

TEST_F(VirtualTimeTest, AKernelThatIsSkippedTakesItsTimeAlone) {
  const CUfunction increment = Kernel(kIncrement, "increment");
  ASSERT_OK(cuMemsetD32(word_, 3, 1));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_FLOAT_EQ(Time([&] { EXPECT_OK(Launch(increment, {&word_}, stream_)); }), 7);
  unsigned value = 0;
  ASSERT_OK(cuMemcpyDtoH(&value, word_, 4));
  EXPECT_EQ(value, 3u);
}

TEST_F(VirtualTimeTest, AKernelWithoutARuleIsRefused) {
  const CUfunction add = Kernel(kVectorAdd, "vector_add");
  unsigned count = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, Launch(add, {&word_, &word_, &word_, &count}, stream_));
}

TEST_F(VirtualTimeTest, MoreWorkThanIsKeptLetsTheProgramWait) {
  constexpr int kLaunches = 40'000;  // a beginning and an end each
  EXPECT_FLOAT_EQ(Time([this] {
                    for (int i = 0; i < kLaunches; ++i) EXPECT_OK(Launch(empty_, {}, stream_));
                  }),
                  12.0 * kLaunches);
}

}  // namespace
}  // namespace softgpu::testing

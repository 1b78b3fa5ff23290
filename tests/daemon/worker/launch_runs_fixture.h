// Runs over a driver that notes what runs, and a session whose names the test gives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/worker/device_write.h"
#include "daemon/worker/launch_runs.h"
#include "ipc/calls.h"
#include "ipc/message.h"

namespace worker::runs_test {

struct Ran {
  uintptr_t function = 0;
  uint32_t argument = 0;
  uintptr_t stream = 0;
  bool operator==(const Ran&) const = default;
};

// Functions of steps that are no launches.
constexpr uintptr_t kFill = 1, kCopy = 2;

// A driver whose graphs are lists of steps, which run at each launch.
struct Driver {
  std::map<uintptr_t, std::vector<uintptr_t>> graphs;  // graph or executable: nodes in order
  std::vector<std::pair<size_t, size_t>> edges;        // of the last graph, by places in it
  std::map<uintptr_t, Ran> nodes;
  std::set<uintptr_t> alive;
  std::vector<Ran> ran;
  uintptr_t next = 1;
  uint64_t instantiated = 0, set = 0;
  CUresult add = CUDA_SUCCESS, change = CUDA_SUCCESS, launch = CUDA_SUCCESS;
};
inline Driver fake;

inline Ran RanOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  Ran ran{.function = reinterpret_cast<uintptr_t>(params.func)};
  if (params.extra != nullptr) std::memcpy(&ran.argument, params.extra[1], sizeof ran.argument);
  return ran;
}
inline CUresult Create(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(fake.next);
  fake.alive.insert(fake.next++);
  return CUDA_SUCCESS;
}
inline CUresult Destroy(CUgraph graph) {
  fake.alive.erase(reinterpret_cast<uintptr_t>(graph));
  return CUDA_SUCCESS;
}
inline CUresult AddNode(const Ran& ran, CUgraph graph, CUgraphNode* node) {
  if (fake.add != CUDA_SUCCESS) return fake.add;
  fake.nodes[fake.next] = ran;
  fake.graphs[reinterpret_cast<uintptr_t>(graph)].push_back(fake.next);
  *node = reinterpret_cast<CUgraphNode>(fake.next++);
  return CUDA_SUCCESS;
}
inline CUresult AddKernel(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                          const CUDA_KERNEL_NODE_PARAMS* params) {
  return AddNode(RanOf(*params), graph, node);
}
inline CUresult AddFill(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return AddNode({.function = kFill, .argument = params->value}, graph, node);
}
inline CUresult AddCopy(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                        const CUDA_MEMCPY3D* params, CUcontext) {
  const uint32_t bytes = static_cast<uint32_t>(params->WidthInBytes);
  return AddNode({.function = kCopy, .argument = bytes}, graph, node);
}
inline CUresult AddEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                         const CUgraphEdgeData*, size_t count) {
  const std::vector<uintptr_t>& nodes = fake.graphs[reinterpret_cast<uintptr_t>(graph)];
  const auto place = [&](CUgraphNode node) {
    const auto at = std::find(nodes.begin(), nodes.end(), reinterpret_cast<uintptr_t>(node));
    return static_cast<size_t>(at - nodes.begin());
  };
  fake.edges.clear();
  for (size_t i = 0; i < count; ++i) fake.edges.emplace_back(place(from[i]), place(to[i]));
  return CUDA_SUCCESS;
}
inline CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  ++fake.instantiated;
  fake.graphs[fake.next] = fake.graphs[reinterpret_cast<uintptr_t>(graph)];
  fake.alive.insert(fake.next);
  *exec = reinterpret_cast<CUgraphExec>(fake.next++);
  return CUDA_SUCCESS;
}
inline CUresult SetKernel(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  ++fake.set;
  if (fake.change == CUDA_SUCCESS) fake.nodes[reinterpret_cast<uintptr_t>(node)] = RanOf(*params);
  return fake.change;
}
inline CUresult Launch(CUgraphExec exec, CUstream stream) {
  if (fake.launch != CUDA_SUCCESS) return fake.launch;
  for (const uintptr_t node : fake.graphs[reinterpret_cast<uintptr_t>(exec)]) {
    fake.ran.push_back(fake.nodes[node]);
    fake.ran.back().stream = reinterpret_cast<uintptr_t>(stream);
  }
  return CUDA_SUCCESS;
}
inline CUresult DestroyExec(CUgraphExec exec) {
  fake.alive.erase(reinterpret_cast<uintptr_t>(exec));
  return CUDA_SUCCESS;
}

inline ipc::DriverTable FakeDriver() {
  ipc::DriverTable driver = ipc::NullDriver();
  driver.cuGraphCreate = &Create;
  driver.cuGraphDestroy = &Destroy;
  driver.cuGraphAddKernelNode_v2 = &AddKernel;
  driver.cuGraphAddMemsetNode = &AddFill;
  driver.cuGraphAddMemcpyNode = &AddCopy;
  driver.cuGraphAddDependencies_v2 = &AddEdges;
  driver.cuGraphInstantiateWithFlags = &Instantiate;
  driver.cuGraphExecKernelNodeSetParams_v2 = &SetKernel;
  driver.cuGraphLaunch = &Launch;
  driver.cuGraphExecDestroy = &DestroyExec;
  return driver;
}

// A step of the test: names, which the source looks up.
struct Named {
  uint32_t function = 0;
  uint32_t stream = 0;
  uint32_t argument = 0;    // of a fill its value, of a copy its bytes
  uint32_t bytes_more = 0;  // of arguments
  ipc::Op op = ipc::Op::Launch;
  uint16_t reserved = 0;
};

// The session: names stand for objects; name 0 is of no object.
class Session final : public LaunchSource {
 public:
  std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) override {
    Named named;
    std::memcpy(&named, message.data() + sizeof(ipc::MessageHeader), sizeof named);
    const CUstream on = reinterpret_cast<CUstream>(named.stream * uintptr_t{1000} + streams);
    if (named.op == ipc::Op::cuMemsetD32Async)
      return Described{
          {}, on, DeviceWrite{.elements = 9, .value = named.argument, .element_bytes = 4}};
    if (named.op == ipc::Op::CopyDevice)
      return Described{{}, on, DeviceWrite{.elements = named.argument}};
    if (named.function == 0) return std::nullopt;
    const std::byte* const argument =
        message.data() + sizeof(ipc::MessageHeader) + offsetof(Named, argument);
    const uintptr_t function = named.function * 1000 + functions;
    return Described{{.function = reinterpret_cast<CUfunction>(function),
                      .params = argument,
                      .param_bytes = 4 + named.bytes_more},
                     on};
  }
  bool AreBacked(TouchedSpans*) override { return is_backed; }
  bool UseStream(CUstream) override { return has_streams; }
  uint64_t names_version() const override { return version; }
  Ran RanAlone(const Named& named) const {
    const uintptr_t stream = named.stream * uintptr_t{1000} + streams;
    if (named.op == ipc::Op::cuMemsetD32Async) return {kFill, named.argument, stream};
    if (named.op == ipc::Op::CopyDevice) return {kCopy, named.argument, stream};
    return {named.function * 1000 + functions, named.argument, stream};
  }

  uintptr_t functions = 0, streams = 0;
  uint64_t version = 0;
  bool has_streams = true, is_backed = true;
};

class LaunchRunsTest : public testing::Test {
 protected:
  LaunchRunsTest() { fake = Driver(); }

  static void Append(const Named& named, std::vector<std::byte>* messages) {
    ipc::MessageHeader header;
    header.op = static_cast<uint16_t>(named.op);
    header.bytes = static_cast<uint32_t>(sizeof header + sizeof named + named.bytes_more);
    const size_t at = messages->size();
    messages->resize(at + ipc::PaddedBytes(header.bytes));
    std::memcpy(messages->data() + at, &header, sizeof header);
    std::memcpy(messages->data() + at + sizeof header, &named, sizeof named);
  }
  // The same with a fill and a copy among them.
  std::vector<Named> Mixed(uint32_t count, uint32_t argument) {
    std::vector<Named> steps = Launches(count, argument);
    steps[1] = {0, 1, 70, 0, ipc::Op::cuMemsetD32Async};
    steps[3] = {0, 1, 80, 0, ipc::Op::CopyDevice};
    return steps;
  }
  // Serves a chunk as the session's loop does: what is not replayed runs alone.
  uint32_t Serve(uint32_t place, const std::vector<Named>& launches) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) Append(named, &messages);
    Append({.op = ipc::Op::StreamMark}, &messages);
    uint32_t replayed = 0;
    size_t at = 0;
    for (size_t i = 0; i < launches.size();) {
      const LaunchRuns::Replayed done = runs_.TryUntrusted(
          place + static_cast<uint32_t>(at), std::span(messages).subspan(at), nullptr);
      if (done.bytes == 0) {
        if (Runs(launches[i])) fake.ran.push_back(session_.RanAlone(launches[i]));
        at += ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named) + launches[i].bytes_more);
        ++i;
      } else {
        at += done.bytes;
        i += done.messages;
        replayed += done.launches;
      }
    }
    return replayed;
  }
  std::vector<Named> Launches(uint32_t count, uint32_t argument) {
    std::vector<Named> launches;
    for (uint32_t i = 0; i < count; ++i) launches.push_back({1 + i % 3, 1, argument + i});
    return launches;
  }
  // Whether it does anything: name 0 is of no function.
  static bool Runs(const Named& named) {
    return named.op != ipc::Op::Launch || named.function != 0;
  }
  void ExpectRan(const std::vector<Named>& launches) {
    std::vector<Ran> expected;
    for (const Named& named : launches) {
      if (Runs(named)) expected.push_back(session_.RanAlone(named));
    }
    EXPECT_EQ(fake.ran, expected);
    fake.ran.clear();
  }

  // The client orders these launches, which lie at the place. `read`: words of their arguments.
  CUresult Order(uint32_t place, const std::vector<Named>& launches, std::vector<uint32_t> edges,
                 bool reads_arguments) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) Append(named, &messages);
    std::memcpy(area_.data() + place, messages.data(), messages.size());
    std::vector<uint32_t> read((messages.size() / 4 + 31) / 32, ~0u);
    constexpr size_t kArgument = (sizeof(ipc::MessageHeader) + offsetof(Named, argument)) / 4;
    const size_t words = ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named)) / 4;
    for (size_t at = kArgument; !reads_arguments && at < messages.size() / 4; at += words)
      read[at / 32] &= ~(1u << (at % 32));
    return orders_.OrderLaunches(place, static_cast<unsigned>(messages.size()), edges.data(),
                                 static_cast<unsigned>(edges.size()), read.data(),
                                 static_cast<unsigned>(read.size()), nullptr, 0);
  }
  using Places = std::vector<std::pair<size_t, size_t>>;

  ipc::DriverTable driver_ = FakeDriver();
  Session session_;
  std::vector<std::byte> area_{ipc::limits::kChunkAreaBytes};
  LaunchOrders orders_{area_};
  LaunchRuns runs_{driver_, &session_, &orders_};
};

}  // namespace worker::runs_test

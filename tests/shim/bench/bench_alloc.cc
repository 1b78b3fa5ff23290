// What an allocation costs its program when nothing must be mapped, what a call-site hash costs,
// and how many allocations of a program in steady state need one.
//
//     bench_alloc [--json]
//
// Against a worker process that does nothing; the allocator is the client's own.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shim/call_site.h"
#include "shim/device_memory.h"
#include "shim/driver/local.h"
#include "shim/iterations/iterations.h"
#include "tests/shim/bench/report.h"
#include "tests/shim/bench/sides.h"

namespace {

constexpr int kRounds = 7;
constexpr int kPairs = 100'000;

// Of this thread's own time: whatever else runs costs it nothing here.
double Now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Pair>
bench::Figure Pairs(const char* name, double bar, Pair pair) {
  bench::Figure figure{name, "ns", {}, bar, false};
  for (int i = 0; i < 1000; ++i) pair();
  for (int round = 0; round < kRounds; ++round) {
    const double begin = Now();
    for (int i = 0; i < kPairs; ++i) pair();
    figure.samples.push_back((Now() - begin) / kPairs);
  }
  return figure;
}

void Plain(size_t bytes) {
  CUdeviceptr address = 0;
  CHECK_CALL(local::cuMemAlloc_v2(&address, bytes));
  CHECK_CALL(local::cuMemFree_v2(address));
}

void Ordered(CUstream stream) {
  CUdeviceptr address = 0;
  CHECK_CALL(local::cuMemAllocAsync(&address, 4096, stream));
  CHECK_CALL(local::cuMemFreeAsync(address, stream));
}

// --- call sites ----------------------------------------------------------------------------------

uint64_t sum = 0;

__attribute__((noinline)) double HashBelow(int frames) {
  if (frames > 0) {
    const double ns = HashBelow(frames - 1);
    asm volatile("" ::: "memory");  // no tail call: each level is a frame
    return ns;
  }
  const double begin = Now();
  for (int i = 0; i < kPairs; ++i) sum += shim::CallSite();
  return (Now() - begin) / kPairs;
}

bench::Figure Hashes() {
  bench::Figure figure{"call-site hash of 16 frames", "ns", {}, 1000, false};
  for (int round = 0; round < kRounds; ++round)
    figure.samples.push_back(HashBelow(shim::kSiteFrames));
  return figure;
}

// --- a training loop -----------------------------------------------------------------------------

// One iteration: activations that live until its end, workspaces that die at once, and every tenth
// a validation pass of another shape.
void Iterate(CUfunction function, int iteration) {
  shim::iterations::Iterations::Process().Mark(ipc::BoundarySource::kHeader);
  uint64_t values[8] = {};
  void* params[8];
  for (int i = 0; i < 8; ++i) params[i] = &values[i];
  const int layers = iteration % 10 == 9 ? 12 : 40;
  std::vector<CUdeviceptr> activations;
  for (int layer = 0; layer < layers; ++layer) {
    CHECK_CALL(local::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    CUdeviceptr activation = 0, workspace = 0;
    CHECK_CALL(local::cuMemAlloc_v2(&activation, 1024u * static_cast<unsigned>(layer + layers)));
    CHECK_CALL(local::cuMemAlloc_v2(&workspace, 65536));
    CHECK_CALL(local::cuMemFree_v2(workspace));
    activations.push_back(activation);
  }
  for (const CUdeviceptr activation : activations) CHECK_CALL(local::cuMemFree_v2(activation));
}

void Loop(bench::Report* report) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK_CALL(local::cuModuleLoadData(&module, ".version 7.0\n"));
  CHECK_CALL(local::cuModuleGetFunction(&function, module, "eight"));
  for (int i = 0; i < 40; ++i) Iterate(function, i);
  const shim::DeviceMemory::Counts before = shim::DeviceMemory::Process().counts();
  for (int i = 0; i < 200; ++i) Iterate(function, i);
  const shim::DeviceMemory::Counts after = shim::DeviceMemory::Process().counts();
  const double all = static_cast<double>(after.allocations - before.allocations);
  report->Add({"allocations that need a call-site hash, steady state",
               "%",
               {100 * static_cast<double>(after.hashed - before.hashed) / all},
               5,
               false});
  report->Add({"allocations placed in the lane, steady state",
               "%",
               {100 * static_cast<double>(after.ephemeral - before.ephemeral) / all},
               90,
               true});
  report->Add({"placed there and outlived", "", {static_cast<double>(after.wrong)}, 0, false});
}

}  // namespace

int main(int argc, char** argv) {
  const bool as_json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !as_json) {
    std::fprintf(stderr, "usage: bench_alloc [--json]\n");
    return 2;
  }
  const bench::Sides sides = bench::Connect("");
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CHECK_CALL(local::cuInit(0));
  CHECK_CALL(local::cuCtxCreate_v2(&context, 0, 0));
  CHECK_CALL(local::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  bench::Report report;
  report.Add(Pairs("cuMemAlloc and cuMemFree, 4 KiB", 200, [] { Plain(4096); }));
  report.Add(Pairs("cuMemAlloc and cuMemFree, 16 MiB", 200, [] { Plain(16 << 20); }));
  report.Add(Pairs("cuMemAllocAsync and cuMemFreeAsync, 4 KiB", 200, [&] { Ordered(stream); }));
  report.Add(Hashes());
  Loop(&report);
  report.Print(as_json);
  bench::Disconnect(sides);
  return report.exit_code();
}

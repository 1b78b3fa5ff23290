// What a call costs its program: launches, events, round trips and copies, against a worker process
// that does nothing but move memory.
//
//     bench_calls [--json] [--transport=zmq]
//
// Nothing else may run on the machine: two processes share its cores.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ipc/futex.h"
#include "ipc/zmq_channel.h"
#include "shim/client.h"
#include "shim/connection.h"
#include "shim/driver/local.h"
#include "shim/send.h"
#include "tests/shim/bench/report.h"
#include "tests/shim/bench/sides.h"

namespace {

constexpr int kRounds = 7;

using bench::Check;
using bench::Connect;
using bench::Fail;
using bench::Sides;

double Now() { return static_cast<double>(ipc::MonotonicNs()); }

// --- launches ------------------------------------------------------------------------------------

CUfunction EightParameters() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK_CALL(local::cuModuleLoadData(&module, ".version 7.0\n"));
  CHECK_CALL(local::cuModuleGetFunction(&function, module, "eight"));
  return function;
}

// In bursts of half a ring, so that the client never waits for room; each launch is timed.
bench::Figure Launches(const char* name, int launches_per_round, double bar) {
  constexpr int kLaunchBytes = 192;  // of one message, padded
  constexpr int kBurst = static_cast<int>(ipc::limits::kRingBytes) / 2 / kLaunchBytes;
  const CUfunction function = EightParameters();
  uint64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  void* params[8];
  for (int i = 0; i < 8; ++i) params[i] = &values[i];
  bench::Figure figure{name, "us", {}, bar, false};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> each;
    while (static_cast<int>(each.size()) < launches_per_round) {
      for (int i = 0; i < kBurst; ++i) {
        const double start = Now();
        Check(local::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              "cuLaunchKernel");
        each.push_back((Now() - start) / 1000);
      }
      CHECK_CALL(local::cuCtxSynchronize());
    }
    figure.samples.push_back(bench::Median(std::move(each)));
  }
  return figure;
}

// What a program that wakes up and launches a batch pays for each launch.
bench::Figure LaunchesAfterSleep(const char* name, int batches, useconds_t pause_us) {
  constexpr int kBatch = 1000;
  const CUfunction function = EightParameters();
  uint64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  void* params[8];
  for (int i = 0; i < 8; ++i) params[i] = &values[i];
  bench::Figure figure{name, "us", {}, 0, false};
  for (int batch = 0; batch < batches; ++batch) {
    usleep(pause_us);
    const double start = Now();
    for (int i = 0; i < kBatch; ++i) {
      Check(local::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
            "cuLaunchKernel");
    }
    figure.samples.push_back((Now() - start) / 1000 / kBatch);
    CHECK_CALL(local::cuCtxSynchronize());
  }
  return figure;
}

// --- events --------------------------------------------------------------------------------------

bench::Figure Events(double seconds, double bar) {
  CUevent event = nullptr;
  CHECK_CALL(local::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  bench::Figure figure{"cuEventRecord sustained", "M/s", {}, bar, true};
  const double end = Now() + seconds * 1e9;
  while (Now() < end) {
    const double start = Now();
    constexpr int kRecords = 500'000;
    for (int i = 0; i < kRecords; ++i) Check(local::cuEventRecord(event, nullptr), "cuEventRecord");
    CHECK_CALL(local::cuEventSynchronize(event));
    figure.samples.push_back(kRecords / ((Now() - start) / 1000));
  }
  return figure;
}

// --- round trips ---------------------------------------------------------------------------------

double OnePing() {
  uint64_t echo = 0;
  const double start = Now();
  Check(shim::Call<ipc::Op::Ping>(1, uint64_t{5}, &echo), "Ping");
  return (Now() - start) / 1000;
}

bench::Figure Pings(const char* name, int pings, useconds_t pause_us, double bar) {
  bench::Figure figure{name, "us", {}, bar, false};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> each;
    for (int i = 0; i < pings; ++i) {
      if (pause_us != 0) usleep(pause_us);
      each.push_back(OnePing());
    }
    figure.samples.push_back(bench::Median(std::move(each)));
  }
  return figure;
}

// --- copies --------------------------------------------------------------------------------------

struct CopyCase {
  const char* name;
  size_t bytes;
  bool pinned;
  bool to_device;
  double bar;
};

// The share of memcpy's bandwidth between the same buffers, both measured in turn.
bench::Figure Copies(const CopyCase& one) {
  CUdeviceptr device = 0;
  void* host = nullptr;
  CHECK_CALL(local::cuMemAlloc_v2(&device, one.bytes));
  if (one.pinned) {
    CHECK_CALL(local::cuMemHostAlloc(&host, one.bytes, 0));
  } else {
    host = std::malloc(one.bytes);
  }
  void* const other = std::malloc(one.bytes);
  std::memset(host, 1, one.bytes);
  std::memset(other, 2, one.bytes);
  const auto copy = [&] {
    const double start = Now();
    Check(one.to_device ? local::cuMemcpyHtoD_v2(device, host, one.bytes)
                        : local::cuMemcpyDtoH_v2(host, device, one.bytes),
          one.name);
    CHECK_CALL(local::cuCtxSynchronize());
    return Now() - start;
  };
  const auto plain = [&] {
    const double start = Now();
    if (one.to_device) {
      std::memcpy(other, host, one.bytes);
    } else {
      std::memcpy(host, other, one.bytes);
    }
    return Now() - start;
  };
  copy();
  bench::Figure figure{one.name, "%", {}, one.bar, true};
  const int rounds = one.bytes > (size_t{64} << 20) ? kRounds : 5 * kRounds;
  for (int round = 0; round < rounds; ++round) figure.samples.push_back(100 * plain() / copy());
  CHECK_CALL(local::cuMemFree_v2(device));
  if (one.pinned) CHECK_CALL(local::cuMemFreeHost(host));
  if (!one.pinned) std::free(host);
  std::free(other);
  return figure;
}

constexpr size_t MiB = size_t{1} << 20;
constexpr CopyCase kCopies[] = {
    {"pinned to device, 1 MiB (of memcpy)", MiB, true, true, 0},
    {"pinned to device, 16 MiB", 16 * MiB, true, true, 80},
    {"pinned to device, 256 MiB", 256 * MiB, true, true, 80},
    {"device to pinned, 1 MiB", MiB, true, false, 0},
    {"device to pinned, 16 MiB", 16 * MiB, true, false, 80},
    {"device to pinned, 256 MiB", 256 * MiB, true, false, 80},
    {"pageable to device, 1 MiB", MiB, false, true, 0},
    {"pageable to device, 16 MiB", 16 * MiB, false, true, 60},
    {"pageable to device, 256 MiB", 256 * MiB, false, true, 60},
    {"device to pageable, 1 MiB", MiB, false, false, 0},
    {"device to pageable, 16 MiB", 16 * MiB, false, false, 60},
    {"device to pageable, 256 MiB", 256 * MiB, false, false, 60},
};

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false, zmq = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      as_json = true;
    } else if (std::strcmp(argv[i], "--transport=zmq") == 0) {
      zmq = true;
    } else {
      std::fprintf(stderr, "usage: bench_calls [--json] [--transport=zmq]\n");
      return 2;
    }
  }
  char directory[] = "/tmp/laneway-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) Fail("mkdtemp");
  const std::string endpoint = zmq ? std::string("ipc://") + directory + "/calls" : "";
  const Sides sides = Connect(endpoint);
  CUcontext context = nullptr;
  CHECK_CALL(local::cuInit(0));
  CHECK_CALL(local::cuCtxCreate_v2(&context, 0, 0));

  // The bars are the rings'; ZeroMQ's figures stand beside them.
  const auto bar = [&](double value) { return zmq ? 0 : value; };
  bench::Report report;
  report.Add(
      Launches("cuLaunchKernel, 8 parameters, p50", zmq ? 20'000 : 1'000'000 / kRounds, bar(1)));
  report.Add(LaunchesAfterSleep("each of 1,000 launches after 2 ms of sleep", 50, 2'000));
  report.Add(Events(5, bar(1)));
  report.Add(Pings("Ping, the peer spins, p50", zmq ? 2'000 : 50'000, 0, bar(1)));
  report.Add(Pings("Ping, the peer has slept 2 ms, p50", 200, 2'000, bar(15)));
  for (const CopyCase& one : kCopies) {
    CopyCase judged = one;
    judged.bar = bar(one.bar);
    report.Add(Copies(judged));
  }
  report.Print(as_json);
  bench::Disconnect(sides);
  if (zmq) unlink((std::string(directory) + "/calls").c_str());
  rmdir(directory);
  return report.exit_code();
}

#include "tests/softgpu/exec/bench_launches.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace softgpu::testing {
namespace {

constexpr int kLaunchRounds = 25, kLaunches = 1000, kWakes = 200;
constexpr std::chrono::milliseconds kRest(2);  // long enough for every thread to fall asleep

constexpr char kEmpty[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n";

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The driver's functions that this needs.
class Driver {
 public:
  Driver() : library_(dlopen(BENCH_DRIVER, RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    Check(Get<decltype(&cuInit)>("cuInit")(0));
    Check(Get<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0));
    Check(Get<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device));
    Check(Get<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
    Check(Get<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, kEmpty));
    Check(Get<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&empty_, module, "empty"));
    launch_ = Get<decltype(&cuLaunchKernel)>("cuLaunchKernel");
    synchronize_ = Get<decltype(&cuStreamSynchronize)>("cuStreamSynchronize");
    query_ = Get<decltype(&cuStreamQuery)>("cuStreamQuery");
  }

  void Launch() { Check(launch_(empty_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)); }
  void Synchronize() { Check(synchronize_(nullptr)); }
  void AwaitByQuery() {
    while (query_(nullptr) == CUDA_ERROR_NOT_READY) {
    }
  }

 private:
  static void Check(CUresult result) {
    if (result != CUDA_SUCCESS)
      throw std::runtime_error("the driver answers " + std::to_string(result));
  }
  template <class Function>
  Function Get(const char* name) {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* const library_;
  CUfunction empty_ = nullptr;
  decltype(&cuLaunchKernel) launch_ = nullptr;
  decltype(&cuStreamSynchronize) synchronize_ = nullptr;
  decltype(&cuStreamQuery) query_ = nullptr;
};

struct Samples {
  double each[kLaunchRounds], woken[kWakes], polled[kWakes];  // microseconds
};

template <class Wait>
double FromSleep(Driver* driver, const Wait& wait) {
  std::this_thread::sleep_for(kRest);
  const double begin = NowUs();
  driver->Launch();
  wait();
  return NowUs() - begin;
}

Samples Measure() {
  setenv("LANEWAY_SOFTGPU", "executor=llvm,cache=off", 1);
  Driver driver;
  driver.Launch();  // compiles it
  driver.Synchronize();
  Samples samples;
  for (double& sample : samples.each) {
    const double begin = NowUs();
    for (int k = 0; k < kLaunches; ++k) driver.Launch();
    driver.Synchronize();
    sample = (NowUs() - begin) / kLaunches;
  }
  for (double& sample : samples.woken) sample = FromSleep(&driver, [&] { driver.Synchronize(); });
  for (double& sample : samples.polled) sample = FromSleep(&driver, [&] { driver.AwaitByQuery(); });
  return samples;
}

// Writes what it measured.
int Child(int out) {
  try {
    const Samples samples = Measure();
    return write(out, &samples, sizeof samples) == sizeof samples ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_device: %s\n", failure.what());
    return 1;
  }
}

}  // namespace

void MeasureLaunches(bench::Report* report) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) _exit(Child(ends[1]));
  close(ends[1]);
  Samples samples;
  const bool whole = read(ends[0], &samples, sizeof samples) == sizeof samples;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0) throw std::runtime_error("launches could not be measured");
  const auto all = [](const auto& array) {
    return std::vector<double>(std::begin(array), std::end(array));
  };
  report->Add({"empty launch, each of 1,000", "us", all(samples.each), 5});
  report->Add({"one from sleep, until a wait returns", "us", all(samples.woken), 25});
  report->Add({"one from sleep, until a query says so", "us", all(samples.polled)});
}

}  // namespace softgpu::testing

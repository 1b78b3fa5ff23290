// Faults: what every later call answers, and what is said about the culprit. Each test is a process
// of its own, since a fault is the process's.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "tests/softgpu/driver_test.h"

namespace {
// Set in a child that has none of its parent's threads: to LeakSanitizer what they own is lost.
bool threads_are_gone = false;
}  // namespace
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return threads_are_gone ? 1 : 0;
}

namespace softgpu::testing {
namespace {

// Runs `body` in a child that hasn't touched the driver; its exit code says what failed.
int InChild(const char* config, int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("LANEWAY_SOFTGPU", config, 1);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

CUfunction Load(const char* kernel, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  cuModuleLoadData(&module, (std::string(kHeader) + kernel).c_str());
  cuModuleGetFunction(&function, module, name);
  return function;
}

CUresult LaunchStore(CUfunction function, CUdeviceptr to, CUstream stream) {
  unsigned value = 1;
  void* params[] = {&to, &value};
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
}

#define STEP(number, condition) \
  if (!(condition)) return number

int StrayStore() {
  CUcontext context = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  std::string log;
  CUlogsCallbackHandle handle = nullptr;
  cuLogsRegisterCallback(
      [](void* data, CUlogLevel, char* message, size_t bytes) {
        static_cast<std::string*>(data)->append(message, bytes);
      },
      &log, &handle);
  CUstream stream = nullptr;
  STEP(2, cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  STEP(3, cuMemAlloc(&pointer, 16) == CUDA_SUCCESS);
  STEP(4, LaunchStore(Load(kStore, "store"), 7 * 4, stream) == CUDA_SUCCESS);
  cuStreamSynchronize(stream);  // from here on everything is skipped
  STEP(5, cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(6, cuMemAlloc(&pointer, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(7, cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(8, cuMemFree(pointer) == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(9, log.find("store") != std::string::npos);
  CUcontext current = nullptr;
  STEP(10, cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context);
  int count = 0;
  STEP(11, cuDeviceGetCount(&count) == CUDA_SUCCESS);
  return 0;
}

// Work queued behind the fault: host functions are left out, callbacks are told.
int WorkBehindTheFault() {
  CUcontext context = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr flag = 0;
  STEP(2, cuMemAllocManaged(&flag, 4, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  *reinterpret_cast<volatile int*>(flag) = 0;
  CUstream stream = nullptr;
  STEP(3, cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
  static bool host_ran = false;
  static CUresult told = CUDA_SUCCESS;
  const CUfunction store = Load(kStore, "store");
  STEP(4, cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  STEP(5, LaunchStore(store, 28, stream) == CUDA_SUCCESS);
  STEP(6, cuLaunchHostFunc(
              stream, [](void*) { host_ran = true; }, nullptr) == CUDA_SUCCESS);
  STEP(7, cuStreamAddCallback(
              stream, [](CUstream, CUresult status, void*) { told = status; }, nullptr, 0) ==
              CUDA_SUCCESS);
  std::atomic_ref<int>(*reinterpret_cast<int*>(flag)).store(1);
  STEP(8, cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(9, !host_ran);
  STEP(10, told == CUDA_ERROR_ILLEGAL_ADDRESS);
  return 0;
}

int StickyContext() {
  CUcontext bad = nullptr, good = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&good, nullptr, 0, 0) == CUDA_SUCCESS);
  STEP(2, cuCtxCreate(&bad, nullptr, 0, 0) == CUDA_SUCCESS);
  STEP(3, LaunchStore(Load(kStore, "store"), 28, nullptr) == CUDA_SUCCESS);
  STEP(4, cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  STEP(5, cuCtxDestroy(bad) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  STEP(6, cuMemAlloc(&pointer, 16) == CUDA_SUCCESS);
  STEP(7, LaunchStore(Load(kStore, "store"), pointer, nullptr) == CUDA_SUCCESS);
  STEP(8, cuCtxSynchronize() == CUDA_SUCCESS);
  return 0;
}

struct Ending {
  CUresult code;
  const char* body;
};
constexpr Ending kEndings[] = {
    {CUDA_ERROR_ILLEGAL_ADDRESS, "st.global.u32 [%l], 1;"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "st.shared.u32 [box+2], 1;"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "bar.sync 99;"},
    {CUDA_ERROR_LAUNCH_FAILED, "trap;"},
    {CUDA_ERROR_LAUNCH_FAILED, "call again, ();"},
};

// Each fault is its context's for ever, and nobody else's.
int EveryFaultIsItsContexts() {
  CUcontext good = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&good, nullptr, 0, 0) == CUDA_SUCCESS);
  int step = 10;
  for (const Ending& ending : kEndings) {
    CUcontext bad = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr pointer = 0;
    STEP(2, cuCtxCreate(&bad, nullptr, 0, 0) == CUDA_SUCCESS);
    const std::string kernel = std::string(".func again() { call again, (); ret; }\n") +
                               ".visible .entry end() { .reg .b64 %l; .shared .b8 box[8];\n" +
                               "mov.u64 %l, 4096;\n" + ending.body + "\nret; }\n";
    STEP(3, cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
    STEP(4, cuLaunchKernel(Load(kernel.c_str(), "end"), 2, 1, 1, 32, 1, 1, 0, stream, nullptr,
                           nullptr) == CUDA_SUCCESS);
    STEP(step, cuStreamSynchronize(stream) == ending.code);
    STEP(step + 1, cuCtxSynchronize() == ending.code && cuStreamQuery(stream) == ending.code);
    STEP(step + 2, cuMemAlloc(&pointer, 16) == ending.code);
    STEP(step + 3, cuCtxSetCurrent(good) == CUDA_SUCCESS);
    STEP(step + 4, cuMemAlloc(&pointer, 16) == CUDA_SUCCESS);
    STEP(step + 5, LaunchStore(Load(kStore, "store"), pointer, nullptr) == CUDA_SUCCESS &&
                       cuCtxSynchronize() == CUDA_SUCCESS && cuMemFree(pointer) == CUDA_SUCCESS);
    STEP(step + 6, cuCtxDestroy(bad) == CUDA_SUCCESS);
    step += 10;
  }
  return 0;
}

// What no machine has room for is refused where it is asked for, and nothing is poisoned.
int TooLarge() {
  CUcontext context = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  const auto runs = [](const std::string& outside, const char* inside, unsigned grid,
                       unsigned shared) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    const std::string text = std::string(kHeader) + outside + ".visible .entry e() { " + inside +
                             " .reg .b32 %r; mov.u32 %r, %tid.x; ret; }\n";
    if (cuModuleLoadData(&module, text.c_str()) != CUDA_SUCCESS) return false;
    if (cuModuleGetFunction(&function, module, "e") != CUDA_SUCCESS) return false;
    return cuLaunchKernel(function, grid, 1, 1, 32, 1, 1, shared, nullptr, nullptr, nullptr) ==
               CUDA_SUCCESS &&
           cuCtxSynchronize() == CUDA_SUCCESS;
  };
  STEP(2, !runs(".global .b8 vast[0x10000000000];\n", "", 1, 0));
  STEP(3, !runs("", ".shared .b8 vast[0x10000000];", 1, 0));
  STEP(4, !runs("", "", 1, 0x7fffffff));
  STEP(5, !runs("", "", 0x80000000, 0));
  STEP(6, runs("", "", 1, 0) && cuCtxSynchronize() == CUDA_SUCCESS);
  return 0;
}

int BadConfig() { return cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1; }

int TwoDevices() {
  int count = 0;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2);
  size_t bytes = 0;
  STEP(2, cuDeviceTotalMem(&bytes, 1) == CUDA_SUCCESS && bytes == size_t{512} << 20);
  int major = 0, can = 0;
  STEP(3, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1) ==
                  CUDA_SUCCESS &&
              major == 9);
  STEP(4, cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS && can == 1);
  CUuuid first, second;
  STEP(5,
       cuDeviceGetUuid(&first, 0) == CUDA_SUCCESS && cuDeviceGetUuid(&second, 1) == CUDA_SUCCESS);
  STEP(6, std::string(first.bytes, 16) != std::string(second.bytes, 16));
  return 0;
}

// A child of an initialised process has no driver, and ends without a crash.
int ForkedChild() {
  CUcontext context = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  STEP(2, LaunchStore(Load(kStore, "store"), 0, nullptr) != CUDA_ERROR_INVALID_HANDLE);
  const pid_t child = fork();
  if (child == 0) {
    threads_are_gone = true;
    CUdeviceptr pointer = 0;
    const bool refused = cuMemAlloc(&pointer, 16) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
    std::exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 3;
}

// exit() with streams still at work.
int ExitWhileBusy() {
  CUcontext context = nullptr;
  STEP(1, cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr flag = 0;
  STEP(2, cuMemAllocManaged(&flag, 4, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  *reinterpret_cast<volatile int*>(flag) = 0;
  for (int i = 0; i < 4; ++i) {
    CUstream stream = nullptr;
    STEP(3, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    STEP(4, cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  }
  std::exit(0);
}

TEST(FaultTest, ProcessIsPoisonedByDefault) { EXPECT_EQ(InChild("", &StrayStore), 0); }
TEST(FaultTest, WorkBehindTheFault) { EXPECT_EQ(InChild("", &WorkBehindTheFault), 0); }
TEST(FaultTest, StickyContext) { EXPECT_EQ(InChild("sticky=context", &StickyContext), 0); }
TEST(FaultTest, EveryFaultIsItsContexts) {
  EXPECT_EQ(InChild("sticky=context", &EveryFaultIsItsContexts), 0);
}
TEST(FaultTest, WhatIsTooLargeIsRefused) { EXPECT_EQ(InChild("", &TooLarge), 0); }
TEST(ConfigTest, BadValuesFailInit) { EXPECT_EQ(InChild("devices=many", &BadConfig), 0); }
TEST(ConfigTest, TwoDevices) {
  EXPECT_EQ(InChild("devices=2,memory=512MiB,cc=9.0", &TwoDevices), 0);
}
TEST(ProcessTest, ForkedChildIsRefused) { EXPECT_EQ(InChild("", &ForkedChild), 0); }
TEST(ProcessTest, ExitWhileBusy) { EXPECT_EQ(InChild("", &ExitWhileBusy), 0); }

}  // namespace
}  // namespace softgpu::testing

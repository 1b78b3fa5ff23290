// Our NVML over devices that the test makes, as software and, before a vendor's library, as GPUs.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "nvml/state.h"

namespace {

class Given : public nvml::Source {
 public:
  bool Read(nvml::Snapshot* snapshot) override {
    ++reads;
    if (alive) *snapshot = now;
    return alive;
  }

  nvml::Snapshot now;
  bool alive = true;
  int reads = 0;
};

Given* TheGiven() {
  static Given* const given = new Given;
  return given;
}

nvml::Device DeviceNamed(const std::string& name, const std::string& place) {
  nvml::Device device;
  device.name = name;
  device.uuid = "GPU-" + name;
  device.pci_bus_id = place;
  device.major = 8;
  device.multiprocessors = 4;
  device.total_bytes = 1000;
  device.used_bytes = 300;
  device.busy_percent = 42;
  device.processes = {{11, 100}, {12, 200}};
  return device;
}

class NvmlTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("LD_LIBRARY_PATH", FAKE_VENDOR_DIRECTORY, 1); }
  NvmlTest() {
    *TheGiven() = {};
    TheGiven()->now.devices = {DeviceNamed("first", "0000:01:00.0"),
                               DeviceNamed("second", "0000:AF:00.0")};
  }
  ~NvmlTest() override {
    while (nvmlShutdown() == NVML_SUCCESS) {
    }
  }
  void Init(bool on_gpu = false) {
    TheGiven()->now.on_gpu = on_gpu;
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &first_), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second_), NVML_SUCCESS);
  }
  std::string NameOf(nvmlDevice_t device) {
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    EXPECT_EQ(nvmlDeviceGetName(device, name, sizeof name), NVML_SUCCESS);
    return name;
  }

  nvmlDevice_t first_ = nullptr, second_ = nullptr;
};

TEST_F(NvmlTest, BeforeInitAndAfterTheLastShutdownNothingIsTold) {
  unsigned count = 7;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized");
  Init();
  EXPECT_EQ(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS) << "one user is left";
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
}

TEST_F(NvmlTest, WithoutAnybodyToAskThereIsNoDriver) {
  TheGiven()->alive = false;
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
}

TEST_F(NvmlTest, DevicesAreFoundByNumberNameAndPlace) {
  Init();
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-second", &found), NVML_SUCCESS);
  EXPECT_EQ(found, second_);
  for (const char* const place : {"0000:AF:00.0", "00000000:af:00.0", "0:AF:0.0"}) {
    found = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(place, &found), NVML_SUCCESS) << place;
    EXPECT_EQ(found, second_) << place;
  }
  unsigned index = 7;
  EXPECT_EQ(nvmlDeviceGetIndex(second_, &index), NVML_SUCCESS);
  EXPECT_EQ(index, 1u);
  nvmlPciInfo_t place = {};
  EXPECT_EQ(nvmlDeviceGetPciInfo_v3(second_, &place), NVML_SUCCESS);
  EXPECT_STREQ(place.busId, "00000000:AF:00.0");
  EXPECT_STREQ(place.busIdLegacy, "0000:AF:00.0");
}

TEST_F(NvmlTest, WhatIsNoDeviceOrNoPlaceForAnAnswerIsRefused) {
  Init();
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-third", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("nowhere", &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:02:00.0", &found), NVML_ERROR_NOT_FOUND);
  const nvmlDevice_t wild = reinterpret_cast<nvmlDevice_t>(8);
  nvmlMemory_t memory = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(wild, &memory), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(first_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  char name[6];
  EXPECT_EQ(nvmlDeviceGetName(first_, name, 5), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(nvmlDeviceGetName(first_, name, 6), NVML_SUCCESS);
}

TEST_F(NvmlTest, MemoryAndUseAreTheSources) {
  Init();
  nvmlMemory_t memory = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(first_, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 1000u);
  EXPECT_EQ(memory.free, 700u);
  EXPECT_EQ(memory.used, 300u);
  nvmlMemory_v2_t newer = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(first_, &newer), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  newer.version = nvmlMemory_v2;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(first_, &newer), NVML_SUCCESS);
  EXPECT_EQ(newer.used, 300u);
  nvmlUtilization_t use = {};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(first_, &use), NVML_SUCCESS);
  EXPECT_EQ(use.gpu, 42u);
}

TEST_F(NvmlTest, ProcessesAreListedAsEachVersionOfTheCallWantsThem) {
  Init();
  unsigned count = 1;
  std::array<nvmlProcessInfo_t, 4> infos = {};
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first_, &count, infos.data()),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  count = 4;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first_, &count, infos.data()), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(infos[1].pid, 12u);
  EXPECT_EQ(infos[1].usedGpuMemory, 200u);
  EXPECT_EQ(infos[1].gpuInstanceId, ~0u);
  std::array<nvmlProcessInfo_v1_t, 2> old = {};
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(first_, &count, old.data()), NVML_SUCCESS);
  EXPECT_EQ(old[0].pid, 11u);
  EXPECT_EQ(old[0].usedGpuMemory, 100u);
  EXPECT_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(first_, &count, infos.data()), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first_, nullptr, infos.data()),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlTest, FiguresAreReadAgainWhenTheyAreOldAndKeptWhenNobodyAnswers) {
  Init();
  const int reads = TheGiven()->reads;
  nvmlMemory_t memory = {};
  for (int i = 0; i < 100; ++i) (void)nvmlDeviceGetMemoryInfo(first_, &memory);
  EXPECT_LT(TheGiven()->reads, reads + 50);
  TheGiven()->now.devices[0].used_bytes = 400;
  while (memory.used != 400) (void)nvmlDeviceGetMemoryInfo(first_, &memory);
  TheGiven()->alive = false;
  const int last = TheGiven()->reads;
  while (TheGiven()->reads == last)
    ASSERT_EQ(nvmlDeviceGetMemoryInfo(first_, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, 400u);
}

TEST_F(NvmlTest, TheSoftwareGpuHasNoClocksAndNoLinksAndKeepsItsSettings) {
  Init();
  unsigned value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(first_, &value), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetClockInfo(first_, NVML_CLOCK_SM, &value), NVML_ERROR_NOT_SUPPORTED);
  nvmlEnableState_t link = NVML_FEATURE_ENABLED;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first_, 0, &link), NVML_SUCCESS);
  EXPECT_EQ(link, NVML_FEATURE_DISABLED);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first_, 99, &link), NVML_ERROR_INVALID_ARGUMENT);
  nvmlGpuFabricInfo_v2_t fabric = {};
  fabric.version = nvmlGpuFabricInfo_v2;
  EXPECT_EQ(nvmlDeviceGetGpuFabricInfoV(first_, reinterpret_cast<nvmlGpuFabricInfoV_t*>(&fabric)),
            NVML_SUCCESS);
  EXPECT_EQ(fabric.state, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceSetPersistenceMode(first_, NVML_FEATURE_ENABLED), NVML_ERROR_NO_PERMISSION);
  nvmlFieldValue_t fields[2] = {};
  EXPECT_EQ(nvmlDeviceGetFieldValues(first_, 2, fields), NVML_SUCCESS);
  EXPECT_EQ(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(NvmlTest, EveryProcessorThatTheThreadMayUseIsNear) {
  Init();
  cpu_set_t processors;
  ASSERT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
  std::array<unsigned long, CPU_SETSIZE / 64> set = {};
  EXPECT_EQ(nvmlDeviceGetCpuAffinity(first_, set.size(), set.data()), NVML_SUCCESS);
  for (size_t i = 0; i < CPU_SETSIZE; ++i)
    ASSERT_EQ((set[i / 64] >> i % 64 & 1) != 0, CPU_ISSET(i, &processors)) << "processor " << i;
}

// --- on a GPU ------------------------------------------------------------------------------------

TEST_F(NvmlTest, OnAGpuTheVendorTellsOfTheDevicesAndWeOfMemory) {
  Init(true);
  EXPECT_EQ(NameOf(first_), "vendor's");
  unsigned degrees = 0;
  EXPECT_EQ(nvmlDeviceGetTemperature(second_, NVML_TEMPERATURE_GPU, &degrees), NVML_SUCCESS);
  EXPECT_EQ(degrees, 50u) << "the vendor counts the devices in another order";
  unsigned index = 7;
  EXPECT_EQ(nvmlDeviceGetIndex(second_, &index), NVML_SUCCESS);
  EXPECT_EQ(index, 1u);
  nvmlMemory_t memory = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(second_, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, 300u);
}

TEST_F(NvmlTest, OnAGpuSettingsAreRefusedAndWhatTheVendorLacksIsSaid) {
  Init(true);
  EXPECT_EQ(nvmlDeviceSetPersistenceMode(first_, NVML_FEATURE_ENABLED), NVML_ERROR_NO_PERMISSION);
  unsigned value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(first_, &value), NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST_F(NvmlTest, AGpuThatTheVendorDoesNotKnowEndsInit) {
  TheGiven()->now.devices[0].uuid = "GPU-third";
  TheGiven()->now.on_gpu = true;
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_NOT_FOUND);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
}

}  // namespace

nvml::Source& nvml::TheSource() { return *TheGiven(); }

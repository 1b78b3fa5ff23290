// Which devices a job gets, and that the scheduler is told of all terms.
#include "daemon/control/choose_devices.h"

#include <gtest/gtest.h>

namespace control {
namespace {

ipc::SchedulingTerms Wanting(uint32_t devices) {
  ipc::SchedulingTerms terms;
  terms.devices_wanted = devices;
  return terms;
}

ipc::SchedulingTerms On(uint8_t device) {
  ipc::SchedulingTerms terms;
  terms.device_count = 1;
  terms.devices[0] = device;
  return terms;
}

TEST(ChooseDevicesTest, DevicesThatAreNotThereAreRefusedInASentence) {
  ipc::SchedulingTerms terms = On(1);
  EXPECT_TRUE(ChooseDevices({{}, {}}, &terms).ok());
  terms = On(2);
  EXPECT_EQ(ChooseDevices({{}, {}}, &terms).message(),
            "--gpus names device 2, and there are 2 devices, 0 to 1; laneway status lists them");
  terms = Wanting(2);
  EXPECT_EQ(ChooseDevices({{}}, &terms).message(),
            "--gpus wants 2 devices, and there is 1; laneway status lists them");
}

TEST(ChooseDevicesTest, ChoosesThoseThatTheFewestUse) {
  ipc::SchedulingTerms terms = Wanting(1);
  ASSERT_TRUE(ChooseDevices({{.sessions = 2}, {.sessions = 1}, {.sessions = 1}}, &terms).ok());
  EXPECT_EQ(terms.device_count, 1u);
  EXPECT_EQ(terms.devices_wanted, 0u);
  EXPECT_EQ(FirstDeviceOf(terms), 1u);
  terms = Wanting(2);
  ASSERT_TRUE(ChooseDevices({{.used_bytes = 9}, {.sessions = 1}, {}}, &terms).ok());
  EXPECT_EQ(terms.devices[0], 2);
  EXPECT_EQ(terms.devices[1], 0) << "sessions go before memory";
  EXPECT_EQ(FirstDeviceOf({}), 0u);
}

TEST(ChooseDevicesTest, TheSchedulerIsToldOfEveryTerm) {
  ipc::control::SessionRecord record;
  record.session_id = 1;
  record.job.number = 2;
  record.uid = 3;
  record.device = 4;
  record.job.memory_limit_bytes = 5;
  record.job.scheduling.priority = 6;
  record.job.scheduling.weight = 7;
  record.job.scheduling.deadline_us = 8;
  record.job.scheduling.gang = 9;
  const scheduler::SessionArrived arrived = ArrivedWith(record);
  EXPECT_EQ(arrived.session, 1u);
  EXPECT_EQ(arrived.job, 2u);
  EXPECT_EQ(arrived.user, 3u);
  EXPECT_EQ(arrived.device, 4u);
  EXPECT_EQ(arrived.limit_bytes, 5);
  EXPECT_EQ(arrived.priority, 6u);
  EXPECT_EQ(arrived.weight, 7);
  EXPECT_EQ(arrived.deadline_us, 8);
  EXPECT_EQ(arrived.gang_size, 9u);
}

}  // namespace
}  // namespace control

// The table of virtual time: which rule counts, what copies take, and what is refused.
#include "softgpu/driver/timing_table.h"

#include <gtest/gtest.h>

namespace softgpu {
namespace {

TimingTable Parse(const std::string& text) {
  std::string error;
  const std::optional<TimingTable> table = TimingTable::ParseUntrusted(text, &error);
  EXPECT_TRUE(table.has_value()) << error;
  return table.value_or(TimingTable());
}

TEST(TimingTableTest, TheClosestRuleCounts) {
  const TimingTable table = Parse(
      "kernel add 4x1x1 10 0.5   # name and grid\n"
      "kernel add * 20 1 skip\n"
      "kernel * 4x1x1 30 1\n"
      "\n"
      "kernel * * 40 1");
  EXPECT_EQ(table.TimeOf("add", {4, 1, 1}, 1)->cost.time_ns, 10'000);
  EXPECT_EQ(table.TimeOf("add", {4, 1, 1}, 1)->cost.share, 0.5);
  EXPECT_FALSE(table.TimeOf("add", {4, 1, 1}, 1)->skips);
  EXPECT_EQ(table.TimeOf("add", {4, 1, 2}, 1)->cost.time_ns, 20'000);
  EXPECT_TRUE(table.TimeOf("add", {4, 1, 2}, 1)->skips);
  EXPECT_EQ(table.TimeOf("other", {4, 1, 1}, 1)->cost.time_ns, 30'000);
  EXPECT_EQ(table.TimeOf("other", {5, 1, 1}, 1)->cost.time_ns, 40'000);
  EXPECT_FALSE(Parse("kernel add * 1 1").TimeOf("other", {1, 1, 1}, 1).has_value());
}

TEST(TimingTableTest, ARuleOfBlocksGoesByTheRoofline) {
  const TimingTable table = Parse(
      "device multiply_accumulates_per_ns 100\ndevice bytes_per_ns 10\ndevice sms 4\n"
      "device launch_us 3\ndevice front_end_us 0\nblocks dot * 1000 50\n");
  EXPECT_EQ(table.device().roofline.front_end_ns, 0);
  const TimedKernel all = *table.TimeOf("dot", {16, 1, 1}, 2);
  EXPECT_DOUBLE_EQ(all.cost.time_ns, 160) << "16 blocks of 1,000 multiply-accumulates";
  EXPECT_DOUBLE_EQ(all.cost.share, 1);
  EXPECT_DOUBLE_EQ(all.cost.launch_ns, 3'000);
  const TimedKernel few = *table.TimeOf("dot", {2, 1, 1}, 2);
  EXPECT_DOUBLE_EQ(few.cost.share, 0.25) << "2 of 8 blocks that the device runs at once";
  EXPECT_DOUBLE_EQ(few.cost.time_ns, 80);
}

TEST(TimingTableTest, CopiesOfTheHostGoByTheBusAndOthersByTheMemory) {
  const TimingTable table = Parse("device host_bytes_per_ns 2\ndevice bytes_per_ns 10");
  using Kind = scheduler::streams::TimedWork::Kind;
  EXPECT_EQ(table.BesideDevice(1'000, true).kind, Kind::kCopyToHost);
  EXPECT_EQ(table.BesideDevice(1'000, false).kind, Kind::kCopyToDevice);
  EXPECT_DOUBLE_EQ(table.BesideDevice(1'000, false).cost.time_ns, 500);
  EXPECT_EQ(table.OnDevice(1 << 20).kind, Kind::kKernel);
  EXPECT_DOUBLE_EQ(table.OnDevice(1 << 20).cost.time_ns, 104'857.6);
  EXPECT_DOUBLE_EQ(table.OnDevice(100).cost.share, 1.0 / 640);
  EXPECT_EQ(table.OnDevice(UINT64_MAX).cost.share, 1);
}

TEST(TimingTableTest, RefusalsNameTheLine) {
  for (const char* line : {"kernel",
                           "kernel add * 1",
                           "kernel add * 1 0",
                           "kernel add * 1 1.5",
                           "kernel add * -1 1",
                           "kernel add * nan 1",
                           "kernel add * 1e300 1",
                           "kernel add * 1 1 skips",
                           "kernel add 4 1 1",
                           "kernel add 4x1 1 1",
                           "kernel add 4x0x1 1 1",
                           "kernel add 04x1x1 1 1",
                           "kernel add 4x1x1x 1 1",
                           "kernel add 99999999999x1x1 1 1",
                           "device",
                           "device sms 0",
                           "device sms 2000",
                           "device bytes_per_ns 0",
                           "device colour 1",
                           "blocks add * 1",
                           "grid add * 1 1",
                           "kernel a * 1 1\nkernel a * 2 1"}) {
    std::string error;
    const std::string text = std::string("# a comment\n") + line;
    EXPECT_FALSE(TimingTable::ParseUntrusted(text, &error).has_value()) << line;
    EXPECT_NE(error.find("line "), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace softgpu

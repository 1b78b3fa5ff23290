// What tests of lanes stand on: four sessions, and a driver whose memory keeps its bytes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "daemon/worker/lanes.h"
#include "ipc/calls/limits.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {

using ipc::limits::MiB;
inline constexpr uint64_t kLane = 5;
inline constexpr uint64_t kStep = 2 * MiB;

class LanesTest : public testing::Test {
 protected:
  LanesTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 256 * MiB;
    for (uint64_t i = 0; i < 4; ++i) members_.push_back(Member(i));
  }
  CUdeviceptr Base(size_t session) const {
    return ipc::limits::kSlotBase + session * ipc::limits::kSlotBytes +
           ipc::limits::kEphemeralOffset;
  }
  std::unique_ptr<LaneMember> Member(uint64_t session, uint32_t uid = 1000) {
    return std::make_unique<LaneMember>(session + 1, uid, Base(session), job_);
  }
  LaneMember* member(size_t session) { return members_[session].get(); }
  // Only who is inside changes the lane's size.
  static CUresult Size(LaneTable* lanes, LaneMember* member, uint64_t bytes) {
    CUresult result = lanes->Enter(member);
    if (result != CUDA_SUCCESS) return result;
    result = lanes->Reserve(member, bytes);
    lanes->Exit(member);
    return result;
  }
  CUmemGenericAllocationHandle HandleAt(CUdeviceptr address) {
    const auto found = recording_.mappings.find(address);
    return found == recording_.mappings.end() ? 0 : found->second.handle;
  }

  Recording& recording_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  std::shared_ptr<JobMemory> job_ = std::make_shared<JobMemory>();
  std::vector<std::unique_ptr<LaneMember>> members_;
};

}  // namespace worker

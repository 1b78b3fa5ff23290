// A worker for random programs: what its session's loop does with chunks, runs and orders, over a
// CellDevice whose driver refuses now and then. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "daemon/worker/lanes.h"
#include "daemon/worker/launch_orders.h"
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/own_addresses.h"
#include "ipc/calls.h"
#include "ipc/session_file.h"
#include "tests/daemon/worker/programs/step_machine.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {

// Of the messages of such steps.
uint16_t OpOf(Step::Kind kind);

// The driver, the session file and the memory that all programs of a test share.
struct ProgramSurroundings {
  ProgramSurroundings() : recording(FreshRecording()), environment(RecordingEnvironment()) {
    environment.lanes = &lanes;
    driver = ipc::NullDriver();
    AddCellGraphs(&driver);
    const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
    absl::StatusOr<ipc::SessionFile> mapped = ipc::SessionFile::Map(*fd);
    close(*fd);
    file.emplace(*std::move(mapped));
  }

  Recording& recording;
  Environment environment;
  LaneTable lanes{&environment};
  Arena arena{environment, {1, 1000, nullptr}, 0};
  PinnedMemory pinned{environment, 0, -1};
  ipc::DriverTable driver;
  std::optional<ipc::SessionFile> file;
};

// Scratch memory that the driver refuses now and then. An address is the number of a cell.
class ScratchCells final : public ScratchMemory {
 public:
  explicit ScratchCells(CellDevice* device) : device_(*device) {}
  CUdeviceptr Take() override {
    if (!is_taken_) is_there_ = !device_.Refuses();
    is_taken_ = true;
    return is_there_ ? kScratchCell : 0;
  }
  void GiveBack() override { is_taken_ = false; }

 private:
  CellDevice& device_;
  bool is_taken_ = false, is_there_ = false;
};

class ProgramWorker final : public LaunchSource {
 public:
  ProgramWorker(ProgramSurroundings* around, uint64_t seed) : around_(*around), machine_(seed) {
    for (uint32_t buffer = 0; buffer < kBuffers; ++buffer) SetBacked(buffer, true);
    UseCellDevice(&machine_.device());
    machine_.device().SetRefuses(true);
    Start();
  }
  ~ProgramWorker() override { machine_.device().Finish(); }

  // False: nothing was sent.
  bool ServeOne();
  void ServeAll() {
    while (ServeOne()) continue;
  }
  // Another worker goes on. REQUIRES: all is served.
  void Start() {
    runs_.reset();
    receiver_ = around_.file->WorkerChannel().receiver;
    orders_ = std::make_unique<LaunchOrders>(
        std::span<const std::byte>(around_.file->chunks(), ipc::limits::kChunkAreaBytes),
        &scratch_);
    runs_ = std::make_unique<LaunchRuns>(around_.driver, this, orders_.get());
  }
  StepMachine& machine() { return machine_; }
  LaunchOrders& orders() { return *orders_; }
  bool broken() const { return receiver_->broken(); }
  uint64_t served() const { return served_; }
  uint64_t replayed() const { return replayed_; }

  std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) override;
  bool AreBacked(TouchedSpans* spans) override { return spans->AreBacked(&addresses_); }
  bool HasStream(CUstream stream) override { return IsStream(stream); }
  void UseStream(CUstream) override {}
  bool AreOrdered(CUstream, CUstream) override { return false; }
  uint64_t names_version() const override { return names_version_; }

 private:
  bool IsStream(CUstream stream) const;
  void SetBacked(uint32_t buffer, bool backed);
  void Do(std::span<const std::byte> body);

  ProgramSurroundings& around_;
  StepMachine machine_;
  BackedAddresses backed_;
  OwnAddresses addresses_{&around_.arena, &around_.pinned, &backed_, 0};
  uint64_t names_version_ = 0;
  ScratchCells scratch_{&machine_.device()};
  std::unique_ptr<ipc::Receiver> receiver_;
  std::unique_ptr<LaunchOrders> orders_;
  std::unique_ptr<LaunchRuns> runs_;
  uint64_t served_ = 0, replayed_ = 0;  // steps
};

}  // namespace worker

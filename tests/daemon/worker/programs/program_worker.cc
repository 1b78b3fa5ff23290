#include "tests/daemon/worker/programs/program_worker.h"

#include <unistd.h>

#include <utility>

#include "daemon/worker/device_write.h"
#include "ipc/chunks/chunk_receiver.h"

namespace worker {

using Kind = Step::Kind;

uint16_t OpOf(Kind kind) {
  switch (kind) {
    case Kind::kLaunch:
      return static_cast<uint16_t>(ipc::Op::Launch);
    case Kind::kFill:
      return static_cast<uint16_t>(ipc::Op::cuMemsetD32Async);
    case Kind::kCopy:
      return static_cast<uint16_t>(ipc::Op::CopyDevice);
    default:
      return static_cast<uint16_t>(ipc::Op::StreamMark);
  }
}

bool ProgramWorker::ServeOne() {
  if (!receiver_->Pending()) return false;
  const std::span<const std::byte> message = receiver_->NextUntrusted(0, 0);
  if (message.empty()) return false;
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  if (header.op == static_cast<uint16_t>(ipc::Op::ForgetOrders)) {
    orders_->ForgetOrders();
    return true;
  }
  if (header.op == static_cast<uint16_t>(ipc::Op::Ping)) return true;
  ipc::ChunkReceiver* const chunk = receiver_->midway();
  if (LaunchRuns::IsStepUntrusted(header.op) && chunk != nullptr) {
    const LaunchRuns::Replayed replayed =
        runs_->TryUntrusted(chunk->place(), chunk->FromLast(), nullptr);
    if (replayed.bytes != 0) {
      chunk->Skip(replayed.bytes);
      served_ += replayed.messages;
      replayed_ += replayed.messages;
      return true;
    }
  }
  ++served_;
  Do(message.subspan(sizeof header));
  return true;
}

// A range takes no work from its free on, and goes when the device has done the work before.
void ProgramWorker::Do(std::span<const std::byte> body) {
  const Step step = StepAt(body);
  if (step.kind == Kind::kNewStream || step.kind == Kind::kNewFunction) ++names_version_;
  if (step.kind == Kind::kFree)
    addresses_.GiveUp(AddressOfCell(step.buffer() * kBufferCells), kBufferCells * kCellBytes);
  machine_.Do(body);
  if (step.kind == Kind::kFree || step.kind == Kind::kAllocate)
    SetBacked(step.buffer(), step.kind == Kind::kAllocate);
}

void ProgramWorker::SetBacked(uint32_t buffer, bool backed) {
  const uint64_t address = AddressOfCell(buffer * kBufferCells);
  if (backed) return backed_.Add(address, kBufferCells * kCellBytes);
  backed_.Remove(address, kBufferCells * kCellBytes);
  addresses_.Gone(address);
}

bool ProgramWorker::IsStream(CUstream stream) const {
  for (uint32_t name = 0; name < kStreams; ++name) {
    if (machine_.stream(name) == StreamOfHandle(stream)) return true;
  }
  return false;
}

std::optional<LaunchSource::Described> ProgramWorker::DescribeStepUntrusted(
    std::span<const std::byte> message) {
  const std::span<const std::byte> body = message.subspan(sizeof(ipc::MessageHeader));
  const Step step = StepAt(body);
  Described described{.launch = {}, .stream = HandleOfStream(machine_.stream(step.stream))};
  if (step.kind == Kind::kLaunch) {
    described.launch.function = HandleOfFunction(machine_.function(step.function));
    described.launch.grid[0] = step.count;
    described.launch.params = body.data() + offsetof(Step, to);
    described.launch.param_bytes = static_cast<unsigned>(body.size() - offsetof(Step, to));
    return described;
  }
  const uint64_t bytes = step.count * kCellBytes;
  DeviceWrite write{.to = AddressOfCell(static_cast<uint32_t>(step.to)), .elements = bytes};
  if (step.kind == Kind::kCopy) {
    write.from = AddressOfCell(static_cast<uint32_t>(step.from));
    if (!addresses_.Backs(write.from, bytes)) return std::nullopt;
  } else {
    write.elements = step.count;
    write.value = step.value;
    write.element_bytes = kCellBytes;
  }
  if (!addresses_.Backs(write.to, bytes)) return std::nullopt;
  described.write = write;
  return described;
}

}  // namespace worker

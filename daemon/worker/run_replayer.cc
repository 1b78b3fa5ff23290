#include "daemon/worker/run_replayer.h"

#include <algorithm>
#include <cstring>

#include "daemon/worker/poll_device.h"
#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"
#include "ipc/message.h"

namespace worker {
namespace {

bool IsPinned(uint64_t word) {
  namespace limits = ipc::limits;
  return word >= limits::kSlotBase && word < limits::kSlotsEnd &&
         (word - limits::kSlotBase) % limits::kSlotBytes >= limits::kDeviceArenaBytes;
}

// The first message, and what is behind it.
std::span<const std::byte> TakeMessage(std::span<const std::byte>* messages) {
  const size_t bytes = ipc::HeaderAt(*messages).bytes;
  const std::span<const std::byte> message = messages->first(bytes);
  *messages = messages->subspan(ipc::PaddedBytes(bytes));
  return message;
}

}  // namespace

// An address in the arguments lies at a multiple of four bytes at least: messages are packed.
bool RunReplayer::MayVerify(std::span<const std::byte> messages) const {
  if (!around_.server->LaunchesLeaveBytesAlone() || around_.held->seen_devices.count() != 1)
    return false;
  for (size_t at = 0; at + sizeof(uint64_t) <= messages.size(); at += 4) {
    uint64_t word = 0;
    std::memcpy(&word, messages.data() + at, sizeof word);
    if (IsPinned(word)) return false;
  }
  return true;
}

// A constant can't be looked into, but holds no such address unless the program has written it.
bool RunReplayer::MayReachPinned(const SessionBytes& before) const {
  if (around_.held->pinned.bytes() == 0) return false;
  return around_.held->addresses.HasVariables() || before.AnyWord(&IsPinned);
}

LaunchRuns::Replayed RunReplayer::TryUntrusted(uint32_t place, std::span<const std::byte> messages,
                                               int device, bool verify) {
  const CUcontext context = around_.held->environment.contexts[static_cast<size_t>(device)];
  if (!verify || !runs_.MayReplayUntrusted(place, messages) || !MayVerify(messages))
    return runs_.TryUntrusted(place, messages, context);
  std::optional<SessionBytes> before = SaveAfterWork(device);
  if (before.has_value() && MayReachPinned(*before)) before.reset();
  const LaunchRuns::Replayed replayed = runs_.TryUntrusted(place, messages, context);
  if (!before.has_value() || replayed.bytes == 0 || replayed.result != CUDA_SUCCESS)
    return replayed;
  return Verify(place, messages.first(replayed.bytes), *before, replayed, device);
}

// A failure of the device itself is the result of the run.
LaunchRuns::Replayed RunReplayer::Verify(uint32_t place, std::span<const std::byte> messages,
                                         const SessionBytes& before, LaunchRuns::Replayed replayed,
                                         int device) {
  const Environment& environment = around_.held->environment;
  const std::optional<SessionBytes> of_graph = SaveAfterWork(device);
  if (!of_graph.has_value()) return replayed;
  replayed.result = before.Restore(environment, device);
  if (replayed.result == CUDA_SUCCESS) replayed.result = DoSingly(messages);
  if (replayed.result != CUDA_SUCCESS) return replayed;
  const std::optional<SessionBytes> of_launches = SaveAfterWork(device);
  if (!of_launches.has_value()) return replayed;
  around_.page->replay.verified.fetch_add(replayed.launches, std::memory_order_relaxed);
  const std::optional<uint64_t> difference = of_graph->FirstDifference(*of_launches);
  if (!difference.has_value()) return replayed;
  runs_.GiveUp(place);
  replayed.result = before.Restore(environment, device);
  if (replayed.result == CUDA_SUCCESS) Tell(NameWriter(messages, *difference, device));
  return replayed;
}

std::optional<SessionBytes> RunReplayer::SaveAfterWork(int device) {
  const absl::Time deadline = absl::Now() + around_.patience;
  PollDevice([&] {
    return around_.held->StreamsIdle() || !around_.life->Alive() || absl::Now() >= deadline;
  });
  if (!around_.held->StreamsComplete()) return std::nullopt;
  return SessionBytes::Save(around_.held->environment, device, around_.held->addresses,
                            scratch_.span(), ipc::limits::kVerifyBytesMax);
}

// A launch that fails is no reason to leave out the next one, as where no run is verified.
CUresult RunReplayer::DoSingly(std::span<const std::byte> messages) {
  CUresult first = CUDA_SUCCESS;
  while (!messages.empty() && !IsSticky(first)) {
    const CUresult result = around_.server->DoStepUntrusted(TakeMessage(&messages));
    if (first == CUDA_SUCCESS || IsSticky(result)) first = result;
  }
  return first;
}

std::string_view RunReplayer::NameWriter(std::span<const std::byte> messages, uint64_t address,
                                         int device) {
  static constexpr std::string_view kUnknown = "a kernel that can't be told";
  std::string_view writer = kUnknown;
  std::optional<SessionBytes> last = SaveAfterWork(device);
  while (!messages.empty()) {
    const std::span<const std::byte> message = TakeMessage(&messages);
    (void)around_.server->DoStepUntrusted(message);  // it has succeeded before
    std::optional<SessionBytes> now = SaveAfterWork(device);
    if (!last.has_value() || !now.has_value() || last->At(address) == now->At(address)) continue;
    last = std::move(now);
    const std::optional<LaunchSource::Described> described =
        around_.source->DescribeStepUntrusted(message);
    if (!described.has_value()) continue;
    const char* name = nullptr;
    if (described->write.has_value()) {
      writer = described->write->IsCopy() ? "a copy" : "a fill";
    } else if (around_.held->environment.driver->cuFuncGetName(&name, described->launch.function) ==
               CUDA_SUCCESS) {
      writer = name;
    } else {
      writer = kUnknown;
    }
  }
  return writer;
}

void RunReplayer::Tell(std::string_view kernel) {
  char* const text = around_.page->replay.mismatch;
  const size_t bytes = std::min(kernel.size(), sizeof around_.page->replay.mismatch - 1);
  std::memcpy(text, kernel.data(), bytes);
  text[bytes] = '\0';
  around_.page->replay.mismatches.fetch_add(1, std::memory_order_release);
}

}  // namespace worker

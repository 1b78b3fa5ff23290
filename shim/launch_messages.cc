#include "shim/launch_messages.h"

#include <array>

#include "ipc/codec_worker.h"
#include "ipc/message.h"

namespace shim {
namespace {

constexpr size_t kLaunchesMin = 3;  // of fewer, the worker makes no graph

// Names stay names.
class NameDoor final : public ipc::Session {
 public:
  bool Translate(ipc::HandleKind, ipc::HandleId id, void** driver_handle) override {
    *driver_handle = reinterpret_cast<void*>(static_cast<uintptr_t>(id));
    return true;
  }
  bool MayName(ipc::HandleKind, ipc::HandleId) override { return false; }
  void Bind(ipc::HandleKind, ipc::HandleId, void*) override {}
  void Release(ipc::HandleKind, ipc::HandleId) override {}
  bool Accepts(uint64_t, uint64_t) override { return true; }
  bool AcceptsMatrix(uint64_t, void*) override { return false; }
  bool UsePointerMode(ipc::HandleKind, void*, bool) override { return false; }
  std::span<std::byte> Scratch() override { return {}; }
};

struct Read {
  const std::byte* message;
  LaunchMessage launch;
};

ipc::HandleId NameIn(const ipc::Slot& slot) {
  return static_cast<ipc::HandleId>(slot.As<uintptr_t>());
}

// The parameters of ipc::laneway::Launch, in order.
uint32_t TakeApart(void* target, const ipc::Slot* slots) {
  Read& read = *static_cast<Read*>(target);
  LaunchMessage& launch = read.launch;
  launch.function = NameIn(slots[0]);
  for (size_t i = 0; i < 3; ++i) {
    launch.grid[i] = slots[1 + i].As<unsigned>();
    launch.block[i] = slots[4 + i].As<unsigned>();
  }
  launch.stream = NameIn(slots[8]);
  launch.attributes = slots[10].As<unsigned>();
  launch.param_bytes = slots[12].As<unsigned>();
  if (launch.param_bytes != 0)
    launch.params_at = static_cast<size_t>(slots[11].As<const std::byte*>() - read.message);
  return 0;
}

}  // namespace

std::optional<LaunchMessage> ReadLaunch(std::span<const std::byte> message) {
  if (ipc::HeaderAt(message).op != static_cast<uint16_t>(ipc::Op::Launch)) return std::nullopt;
  NameDoor door;
  Read read{.message = message.data(), .launch = {}};
  std::array<std::byte, 64> room;
  ipc::Writer reply(room);
  const ipc::Served served =
      ipc::ServeUntrusted(ipc::Op::Launch, message.subspan(sizeof(ipc::MessageHeader)), &TakeApart,
                          &read, door, &reply);
  if (!served.called) return std::nullopt;
  return read.launch;
}

std::vector<LaunchRun> LaunchRunsIn(std::span<const std::byte> messages) {
  std::vector<LaunchRun> runs(1);
  uint32_t context = 0;
  for (size_t at = 0; at < messages.size();) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const size_t next = at + ipc::PaddedBytes(header.bytes);
    const std::optional<LaunchMessage> launch = ReadLaunch(messages.subspan(at, header.bytes));
    const bool goes_on = launch.has_value() && launch->attributes == 0;
    LaunchRun* run = &runs.back();
    if (!run->launches.empty() &&
        (!goes_on || context != header.context || run->launches[0].stream != launch->stream))
      run = &runs.emplace_back();
    if (goes_on) {
      if (run->launches.empty()) run->begin = at;
      run->end = next;
      run->launches.push_back(*launch);
      run->places.push_back(at);
      context = header.context;
    }
    at = next;
  }
  std::erase_if(runs, [](const LaunchRun& run) { return run.launches.size() < kLaunchesMin; });
  return runs;
}

}  // namespace shim

#include "daemon/worker/call_handlers/call_handlers.h"

#include <array>
#include <cstring>

#include "daemon/worker/open_waits.h"
#include "daemon/worker/work_ops.h"

namespace worker {
namespace {

thread_local EventTimes* thread_event_times = nullptr;  // of the session that this thread runs

CUresult CUDAAPI ElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return thread_event_times->Elapsed(milliseconds, start, end);
}

ipc::DriverTable TableOfCalls(const ipc::DriverTable& driver) {
  ipc::DriverTable table = driver;
  table.cuEventElapsedTime_v2 = &ElapsedTime;
  OpenWaits::Hook(&table);
  return table;
}

}  // namespace

CallHandlers::CallHandlers(const Surroundings& around)
    : held_(*around.held),
      table_(TableOfCalls(*around.held->environment.driver)),
      call_(*around.call),
      blas_(around.held, &call_, around.memory),
      graphs_(around.held, &call_, around.life),
      modules_(around.held, &handles_, around.file->page()),
      streams_(around.held, &call_, around.bell, around.file, around.swap_fd),
      memory_(around.held, &call_, around.life, around.memory, around.lane),
      session_(around.held, &streams_, around.iterations, around.turn, around.reset),
      door_(around.held, &call_, &handles_, {&blas_, &streams_}),
      movers_{{around.held, &call_, around.turn, {around.file, around.bell, &door_}},
              ArrayHandler({around.held, &call_, &handles_, around.memory, around.file, around.bell,
                            &door_})},
      replayer_({around.held, &call_, around.memory, around.life, this, this, around.file->page(),
                 around.file->chunks()}),
      targets_{&table_,
               held_.environment.cublas,
               held_.environment.cublaslt,
               {&session_, &memory_, &movers_.copies, &modules_, &streams_, &graphs_, &graphs_,
                replayer_.orders(), &movers_.arrays}},
      trace_(*around.held->environment.driver, *around.file, modules_.images()) {
  held_.streams.SetWatcher(&trace_);
}

void CallHandlers::BeginThread() { thread_event_times = streams_.times(); }

void CallHandlers::Begin(const ipc::MessageHeader& header) {
  const bool captured = graphs_.capture() != nullptr && (header.context & ipc::kIntoCapture) != 0 &&
                        IsLibraryCallUntrusted(header.op);
  call_.Begin(IsWorkUntrusted(header.op) && !captured, captured ? graphs_.capture() : nullptr);
}

void CallHandlers::UseDevice(uint32_t header_context) {
  const uint32_t seen = header_context & 0xff;  // counted from 1
  const SeenDevices& devices = held_.seen_devices;
  const int device = devices.At(seen == 0 || seen > devices.count() ? 0 : seen - 1);
  if (device == call_.device) return;
  held_.environment.driver->cuCtxSetCurrent(
      held_.environment.contexts[static_cast<size_t>(device)]);
  call_.device = device;
}

ipc::Served CallHandlers::ServeUntrusted(uint16_t op, std::span<const std::byte> body,
                                         ipc::Writer* reply) {
  const ipc::Served served = ipc::DispatchUntrusted(op, body, targets_, door_, reply);
  if (call_.capture != nullptr) {
    graphs_.NoteTouched(call_.capture->handle());
    blas_.AfterCapturedCall();
    call_.capture = nullptr;
  }
  return served;
}

// --- launches that follow each other ------------------------------------------------------------

std::optional<LaunchSource::Described> CallHandlers::DescribeStepUntrusted(
    std::span<const std::byte> message) {
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  if (IsDeviceWriteUntrusted(header.op)) return DescribeWriteUntrusted(message);
  std::optional<Described> described;
  modules_.Describe(&described);
  Begin(header);
  std::array<std::byte, sizeof(uint32_t) * 4> room;
  ipc::Writer reply(room);
  const ipc::Served served = ServeUntrusted(header.op, message.subspan(sizeof header), &reply);
  modules_.Describe(nullptr);
  if (served.outcome == ipc::Outcome::kMalformed || served.status != 0) return std::nullopt;
  return described;
}

// Pinned memory and memory of other devices is written by the calls themselves.
std::optional<LaunchSource::Described> CallHandlers::DescribeWriteUntrusted(
    std::span<const std::byte> message) {
  if (held_.seen_devices.count() != 1) return std::nullopt;
  Begin(ipc::HeaderAt(message));
  const std::optional<DeviceWrite> write = ReadDeviceWriteUntrusted(message, door_);
  if (!write.has_value() || call_.stream == nullptr || held_.pinned.Contains(write->to, 1) ||
      (write->IsCopy() && held_.pinned.Contains(write->from, 1)))
    return std::nullopt;
  return Described{.launch = {}, .stream = call_.stream->driver, .write = write};
}

void CallHandlers::UseStream(CUstream stream) {
  call_.stream = held_.streams.OfDriver(stream);
  held_.streams.Use(call_.stream);
}

bool CallHandlers::AreOrdered(CUstream stream, CUstream other) {
  const StreamTable::Stream* const one = held_.streams.OfDriver(stream);
  const StreamTable::Stream* const two = held_.streams.OfDriver(other);
  return one == nullptr || two == nullptr || one->legacy || two->legacy;
}

CUresult CallHandlers::DoStepUntrusted(std::span<const std::byte> message) {
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  std::array<std::byte, sizeof(uint32_t) * 4> room;
  ipc::Writer reply(room);
  Begin(header);
  const ipc::Served served = ServeUntrusted(header.op, message.subspan(sizeof header), &reply);
  return served.outcome == ipc::Outcome::kMalformed ? CUDA_ERROR_INVALID_VALUE
                                                    : static_cast<CUresult>(served.status);
}

LaunchRuns::Replayed CallHandlers::TryReplayUntrusted(uint32_t place,
                                                      std::span<const std::byte> messages,
                                                      bool verify) {
  return replayer_.TryUntrusted(place, messages, call_.device, verify);
}

void CallHandlers::DestroyObjects() {
  trace_.Clear();
  replayer_.Clear();
  blas_.Destroy(&handles_);
  graphs_.Destroy(&handles_);
  movers_.arrays.Destroy();
  streams_.DestroyEvents(&handles_);
  modules_.Destroy();
  handles_.Drain(ipc::HandleKind::kStream, [](void*) {});
  held_.streams.Clear();
  held_.frees.Clear();
}

}  // namespace worker

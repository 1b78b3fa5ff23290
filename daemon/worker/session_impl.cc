#include "daemon/worker/session_impl.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"
#include "ipc/futex.h"

namespace worker {
namespace {

constexpr int64_t kReplyWaitUs = 100'000;  // then ask whether the session still lives
constexpr absl::Duration kPoisonedNap = absl::Milliseconds(1);

}  // namespace

std::unique_ptr<Session> Session::Create(SessionSetup setup, const Environment& environment,
                                         std::string* error) {
  std::unique_ptr<SessionImpl> session =
      std::make_unique<SessionImpl>(std::move(setup), environment);
  if (!session->Reserve(error)) return nullptr;
  return session;
}

SessionImpl::SessionImpl(SessionSetup setup, const Environment& environment)
    : environment_(environment),
      driver_(*environment.driver),
      session_id_(setup.session_id),
      progress_(setup.swap_fd),
      shared_file_(std::make_shared<ipc::SessionFile>(std::move(setup.file))),
      file_(*shared_file_),
      channel_(std::move(setup.channel)),
      life_(file_.page(), setup.generation),
      parking_(file_.page(), progress_.get(), [this] { return MayCommand(); }),
      courtesy_(environment.on_processors),
      callbacks_(environment),
      bell_(environment, &file_, &callbacks_, &courtesy_),
      prints_(setup.session_id, &file_),
      held_(environment, setup, &prints_),
      handlers_({&held_, &life_, this, this, &file_, &bell_, setup.swap_fd}),
      requests_({setup.session_id, &held_, &life_, &parking_, &handlers_.call(),
                 [this] { return place_.on_host(); }, [this] { LeaveWhileWaiting(); },
                 [this] {
                   if (gate_ != nullptr) gate_->Settle();
                 }}),
      waits_(environment),
      iteration_ends_(environment, &file_.page()->iteration_times),
      reply_(std::make_unique<std::byte[]>(ipc::limits::kMessageBytesMax)),
      stream_done_(&callbacks_, [this] { NoteStreamDone(); }) {}

bool SessionImpl::Reserve(std::string* error) {
  if (!held_.arena.Reserve(error)) return false;
  driver_.cuCtxSetCurrent(environment_.contexts[0]);
  // The device writes completion words and copies to and from staging.
  const CUresult result =
      driver_.cuMemHostRegister_v2(file_.base(), ipc::kSessionFileBytes,
                                   CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    *error =
        absl::StrCat("the driver cannot register the session's shared file (error ", result, ")");
    return false;
  }
  registered_ = true;
  if (life_.generation() != 0) {
    const CUresult restored = held_.arena.Restore();
    if (restored != CUDA_SUCCESS) {
      *error = absl::StrCat("its device memory cannot be mapped again (error ", restored, ")");
      return false;
    }
    requests_.Inherit(held_.arena.bytes() + held_.arena.swapped_bytes());
    if (held_.arena.swapped()) {
      place_.Moved(true, false);
      lane_.Gone();
    }
  }
  if (channel_.receiver != nullptr) channel_.receiver->Heed(parking_.poked());
  if (environment_.board != nullptr) {
    gate_ = std::make_unique<Gate>(environment_.board, session_id_, [this] { parking_.Ring(); });
    if (place_.on_host()) gate_->Abandon();
  }
  return true;
}

void SessionImpl::Run() {
  handlers_.BeginThread();
  const OpenWaits::Current waits(&waits_);
  courtesy_.Begin();
  if (!AwaitClient()) {
    if (!released_) End();
    return;
  }
  while (life_.Alive()) {
    if (environment_.poison->poisoned.load(std::memory_order_relaxed)) {
      absl::SleepFor(kPoisonedNap);  // the process is about to exit
      continue;
    }
    if (release_.load(std::memory_order_relaxed) && TryLeave()) return LeaveToSuccessor();
    courtesy_.GiveWay(true);
    if (!PassGate()) continue;
    const std::span<const std::byte> message =
        channel_.receiver->NextUntrusted(SpinUs(), Patience(patience_us_));
    if (!message.empty()) {
      ServeMessage(message);
      if (gate_ != nullptr && gate_->unsettled()) gate_->Settle();
    } else if (channel_.receiver->broken()) {
      life_.Lose("laneway: a message of this program had an impossible length; its session ends");
    } else {
      OnSilence();
    }
  }
  End();
}

SessionSnapshot SessionImpl::Snapshot() const {
  return {.ops_received = file_.page()->ops_received.load(std::memory_order_relaxed),
          .device_bytes = held_.arena.bytes(),
          .pinned_bytes = held_.pinned.bytes(),
          .persistent_bytes = requests_.TellBytes(),
          .lane_bytes = lane_.bytes(),
          .place = place_.Look()};
}

void SessionImpl::ServeMessage(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  file_.page()->ops_received.fetch_add(1, std::memory_order_relaxed);
  const bool was_quiet = quiet_.exchange(false);
  patience_us_ = kPatienceUs;
  unquiet_us_ = kUnquietUs;
  bell_.OnMessage();
  handlers_.Begin(header);
  if (handlers_.call().serves_work) {
    Step(&turn_, LaneEvent::kWork, {});
    busy_ = true;
    work_.Add();
  } else if (gate_ == nullptr || gate_->resting()) {
    busy_ = false;
  }
  handlers_.UseDevice(header.context);
  ipc::Writer reply({reply_.get() + sizeof header, ipc::kBodyBytesMax});
  const ipc::Served served =
      handlers_.ServeUntrusted(header.op, message.subspan(sizeof header), &reply);
  if (served.outcome == ipc::Outcome::kMalformed) {
    LoseForMalformed(header.op);
    return;
  }
  if (!turn_.at_boundary) handlers_.streams().NoteWork();
  const bool wants_reply = (header.flags & ipc::kWantsReply) != 0;
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  assert(op.has_value());
  if (IsPoison(*op, served.status)) {
    // With nothing in flight before, this call is not what did it, and it had no effect: the next
    // worker takes it again.
    if (was_quiet) {
      file_.page()->to_worker.tail.store(file_.page()->quiet_position.load(),
                                         std::memory_order_seq_cst);
    }
    environment_.poison->OnPoisoned(0, static_cast<CUresult>(served.status), "");
    return;
  }
  if (served.refusal == ipc::Refusal::kBadAddress) AfterBadAddress(*op);
  if (served.status != 0) {
    NoteFailure(*op, served.status, wants_reply);
  } else if (*op == ipc::Op::cublasSetStream_v2) {
    handlers_.blas().AfterSetStream();
  }
  if (wants_reply) SendReply(header, reply.size());
}

void SessionImpl::LoseForMalformed(uint16_t op_untrusted) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(op_untrusted);
  const std::string name = op.has_value() ? std::string(ipc::RowOf(*op).name)
                                          : absl::StrCat("of an unknown number ", op_untrusted);
  life_.Lose(
      absl::StrCat("laneway: a malformed call, ", name, ", reached the worker; the session ends")
          .c_str());
}

bool SessionImpl::IsPoison(ipc::Op op, uint32_t status) {
  const ipc::Library library = ipc::LibraryOf(op);
  const bool is_driver = library == ipc::Library::kDriver || library == ipc::Library::kLaneway;
  return is_driver && IsSticky(static_cast<CUresult>(status));
}

void SessionImpl::NoteFailure(ipc::Op op, uint32_t status, bool replied) {
  const ipc::Library library = ipc::LibraryOf(op);
  const bool is_driver = library == ipc::Library::kDriver || library == ipc::Library::kLaneway;
  if (replied) return;
  uint32_t none = 0;
  const uint32_t code = is_driver ? status : static_cast<uint32_t>(CUDA_ERROR_UNKNOWN);
  file_.page()->async_error.compare_exchange_strong(none, code);
}

void SessionImpl::SendReply(const ipc::MessageHeader& request, size_t body_bytes) {
  ipc::MessageHeader header = request;
  header.bytes = static_cast<uint32_t>(sizeof header + body_bytes);
  header.flags = ipc::kIsReply;
  std::memcpy(reply_.get(), &header, sizeof header);
  while (life_.Alive()) {
    const std::span<std::byte> room = channel_.sender->Reserve(header.bytes, kReplyWaitUs);
    if (room.empty()) continue;
    std::memcpy(room.data(), reply_.get(), header.bytes);
    channel_.sender->Commit(header.bytes);
    return;
  }
}

// The driver's own calls say so with a status. A library would have faulted.
void SessionImpl::AfterBadAddress(ipc::Op op) {
  const ipc::Library library = ipc::LibraryOf(op);
  const bool computes = library == ipc::Library::kCublas || library == ipc::Library::kCublasLt;
  if (!computes || !handlers_.call().serves_work) return;
  const std::string sentence = absl::StrCat(
      "laneway: ", std::string(ipc::RowOf(op).name),
      " would reach memory that this program has not allocated; look at its sizes, leading "
      "dimensions and strides. The session ends, as after an illegal address");
  life_.Lose(sentence.c_str(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CUresult SessionImpl::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}

CUresult SessionImpl::GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) {
  if (device < 0 || static_cast<size_t>(device) >= held_.seen_devices.count()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  device = held_.seen_devices.At(static_cast<size_t>(device));
  driver_.cuDeviceGetName(info->name, sizeof info->name, device);
  driver_.cuDeviceGetPCIBusId(info->pci_bus_id, sizeof info->pci_bus_id, device);
  CUuuid uuid{};
  driver_.cuDeviceGetUuid_v2(&uuid, device);
  std::memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    const CUdevice_attribute attribute = static_cast<CUdevice_attribute>(i);
    int value = 0;
    if (driver_.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS) {
      info->attributes[i] = value;
    }
  }
  uint64_t free_bytes = 0;
  return held_.arena.MemoryInfo(device, &free_bytes, &info->memory_bytes);
}

}  // namespace worker

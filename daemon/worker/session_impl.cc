#include "daemon/worker/session_impl.h"

#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"
#include "ipc/overloaded.h"

namespace worker {
namespace {

namespace wire = ipc::control;

constexpr int64_t kReplyWaitUs = 100'000;  // then ask whether the session still lives
constexpr int64_t kPoisonedNapUs = 1'000;

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
      file_(environment, std::move(setup.file)),
      channel_(std::move(setup.channel)),
      life_(file_.page(), setup.generation),
      parking_(file_.page(), progress_.get(), [this] { return MayCommand(); }),
      handover_({file_.page(), &life_, &parking_, this}),
      courtesy_(environment.on_processors),
      callbacks_(environment),
      bell_(environment, file_.get(), &callbacks_, &courtesy_),
      prints_(setup.session_id, file_.get()),
      held_(environment, setup, &prints_),
      handlers_(
          {&held_, &life_, &requests_, &lane_, &turn_, this, file_.get(), &bell_, setup.swap_fd}),
      requests_({setup.session_id, &held_, &life_, &parking_, &handlers_.call(),
                 [this] { return swaps_.on_host(); }, [this] { turn_.OnWait(); },
                 [this] {
                   if (turn_.gate() != nullptr) turn_.gate()->Settle();
                 }}),
      drain_(environment, file_.get()),
      reply_(std::make_unique<std::byte[]>(ipc::limits::kMessageBytesMax)),
      iterations_(environment, file_.page(), progress_.get()),
      lane_({setup.session_id, &held_, &handlers_.call(), &life_, &requests_,
             [this](uint64_t lane) { return turn_.IsGranted(lane); },
             [this] { return turn_.IsQuiet(); }}),
      turn_({&held_, &life_, &lane_, &bell_, &callbacks_, &iterations_, file_.page(),
             [this] { return channel_.receiver->Pending(); }}),
      swaps_({setup.session_id, &held_, &lane_, &turn_, &requests_, &parking_}) {}

bool SessionImpl::Reserve(std::string* error) {
  if (!held_.arena.Reserve(error)) return false;
  driver_.cuCtxSetCurrent(environment_.contexts[0]);
  if (!file_.Register(error)) return false;
  if (life_.generation() != 0) {
    const CUresult restored = held_.arena.Restore();
    if (restored != CUDA_SUCCESS) {
      *error = absl::StrCat("its device memory cannot be mapped again (error ", restored, ")");
      return false;
    }
    requests_.Inherit(held_.arena.bytes() + held_.arena.swapped_bytes());
    if (held_.arena.swapped()) swaps_.InheritSwapped();
  }
  if (channel_.receiver != nullptr) channel_.receiver->Heed(parking_.poked());
  if (environment_.board != nullptr) {
    turn_.JoinBoard(environment_.board, session_id_, [this] { parking_.Ring(); });
    if (swaps_.on_host()) turn_.gate()->Abandon();
  }
  return true;
}

void SessionImpl::Run() {
  handlers_.BeginThread();
  const OpenWaits::Current waits(drain_.waits());
  courtesy_.Begin();
  switch (handover_.AwaitClient()) {
    case SessionHandover::Entry::kServe:
      break;
    case SessionHandover::Entry::kLeave:
      return LeaveToSuccessor();
    case SessionHandover::Entry::kEnd:
      return End();
  }
  if (life_.generation() != 0) {  // the ring that its client has put in order
    channel_ = file_.get()->WorkerChannel();
    channel_.receiver->Heed(parking_.poked());
  }
  while (life_.Alive()) {
    if (environment_.poison->poisoned.load(std::memory_order_relaxed)) {
      parking_.Sleep(kPoisonedNapUs);  // the process is about to exit
      continue;
    }
    if (handover_.wanted() && handover_.TryLeave()) return LeaveToSuccessor();
    courtesy_.GiveWay(true);
    if (!PassGate()) continue;
    const std::span<const std::byte> message =
        channel_.receiver->NextUntrusted(SpinUs(), Patience(patience_us_));
    if (!message.empty()) {
      ServeMessage(message);
      if (turn_.gate() != nullptr && turn_.gate()->unsettled()) turn_.gate()->Settle();
    } else if (channel_.receiver->broken()) {
      life_.Lose("laneway: a message of this program had an impossible length; its session ends");
    } else {
      OnSilence();
    }
  }
  End();
}

void SessionImpl::Stop() {
  life_.Stop();
  parking_.poked()->store(1);
  drain_.Stop();
  parking_.Ring();
}

SessionSnapshot SessionImpl::Snapshot() const {
  return {.ops_received = file_.page()->ops_received.load(std::memory_order_relaxed),
          .device_bytes = held_.arena.bytes(),
          .pinned_bytes = held_.pinned.bytes(),
          .persistent_bytes = requests_.TellBytes(),
          .lane_bytes = lane_.bytes(),
          .place = swaps_.Look()};
}

void SessionImpl::ServeMessage(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  file_.page()->ops_received.fetch_add(1, std::memory_order_relaxed);
  const bool was_quiet = handover_.OnTaken();
  patience_us_ = kPatienceUs;
  unquiet_us_ = kUnquietUs;
  bell_.OnMessage();
  handlers_.Begin(header);
  if (handlers_.call().serves_work) {
    turn_.OnWork();
    busy_ = true;
    iterations_.OnWork();
  } else if (turn_.gate() == nullptr || turn_.gate()->resting()) {
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
  if (!turn_.at_boundary()) handlers_.streams().NoteWork();
  const bool wants_reply = (header.flags & ipc::kWantsReply) != 0;
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  assert(op.has_value());
  if (IsPoison(*op, served.status)) {
    // With nothing in flight before, this call is not what did it, and it had no effect: the next
    // worker takes it again.
    if (was_quiet) handover_.UndoTaken();
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

CUresult SessionImpl::Boundary(const ipc::BoundaryInfo* info) {
  const StreamTable::Stream* const last = handlers_.streams().last_work();
  iterations_.OnBoundary(*info, last == nullptr ? nullptr : last->driver);
  turn_.OnBoundary();
  return CUDA_SUCCESS;
}

CUresult SessionImpl::ContextReset(CUdevice) {
  drain_.WaitForStreams(&held_.streams);
  callbacks_.Wait();
  (void)held_.frees.Poll();  // ranges that the program freed are told to lanewayd as such
  drain_.HoldAgain();
  iterations_.Clear();
  handlers_.DestroyObjects();
  handlers_.streams().times()->Clear(true);
  lane_.Exit();  // the arena leaves it; the session enters anew before its next work
  held_.arena.Clear();
  return CUDA_SUCCESS;
}

// --- decisions -----------------------------------------------------------------------------------

// An AssignLane without a question is followed where the session is quiet, and only the last one:
// an earlier one's lane may have ended by then.
void SessionImpl::Obey(const Decision& decision) {
  std::visit(ipc::Overloaded{
                 [this](const wire::Swap& swap) { swaps_.OnOrder(swap); },
                 [this](const wire::AssignLane& assign) {
                   if (assign.result == 0) lane_.Told(assign.lane);
                   if (assign.answer != 0) return parking_.Keep(assign);
                   Post([this, told = assign.lane] { lane_.FollowTold(told, swaps_.on_host()); });
                 },
                 [this](const wire::MemoryAnswer& answer) { parking_.Keep(answer); },
             },
             decision);
}

// Deferred frees are done before the commands, for a swap saves all ranges that are still there.
bool SessionImpl::MayCommand() { return turn_.IsQuiet() && held_.frees.Poll(); }

// --- quiet points, and the end -------------------------------------------------------------------

bool SessionImpl::IsComplete() {
  if (handlers_.modules().HasPartOfAnImage()) return false;
  if (!turn_.LaneIsEmpty()) return false;  // the lane is another's before it could go on
  for (StreamTable::Stream* stream : held_.streams.All()) {
    if (driver_.cuStreamQuery(stream->driver) != CUDA_SUCCESS)
      return false;  // busy, or the device failed
  }
  return true;
}

void SessionImpl::LeaveToSuccessor() {
  handlers_.UseDevice(1);
  callbacks_.Wait();
  iterations_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Detach();
  turn_.LeaveBoard();
  held_.pinned.Detach();
  file_.LetGo();
  drain_.Finish();
  handover_.Left();
}

// An end does not wait for other sessions. Streams, events, device memory with its addresses and
// the lane go at once, by calls that CUDA documents as not waiting. Modules, library handles and
// registrations of host memory go to the reaper, since the driver may wait for the whole context
// there. So a session that is still here after its program has work of its own on the device.
void SessionImpl::End() {
  handlers_.UseDevice(1);
  drain_.CutHeldStreams();
  drain_.WaitForStreams(&held_.streams);
  callbacks_.Wait();
  drain_.Finish();
  iterations_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Clear();
  turn_.LeaveBoard();
  held_.pinned.Clear();
  file_.LetGo();
}

}  // namespace worker

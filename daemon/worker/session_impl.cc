#include "daemon/worker/session_impl.h"

#include <unistd.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/work_ops.h"
#include "ipc/calls/limits.h"
#include "ipc/dispatch.h"
#include "ipc/futex.h"

namespace worker {
namespace {

constexpr int64_t kReplyWaitUs = 100'000;  // then ask whether the session still lives
constexpr absl::Duration kPoisonedNap = absl::Milliseconds(1);

}  // namespace

bool IsSticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<Session> Session::Create(SessionSetup setup, const Environment& environment,
                                         std::string* error) {
  std::unique_ptr<SessionImpl> session =
      std::make_unique<SessionImpl>(std::move(setup), environment);
  if (!session->Reserve(error)) return nullptr;
  return session;
}

namespace {

Tenant TenantOf(const SessionSetup& setup, const Environment& environment) {
  Tenant tenant{setup.session_id, setup.uid, nullptr};
  if (environment.jobs != nullptr) {
    tenant.job = environment.jobs->Of(setup.job_id, setup.memory_limit_bytes);
  } else {
    tenant.job = std::make_shared<JobMemory>();
    tenant.job->SetLimit(setup.memory_limit_bytes);
  }
  return tenant;
}

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

SessionImpl::SessionImpl(SessionSetup setup, const Environment& environment)
    : environment_(environment),
      driver_(*environment.driver),
      progress_(setup.swap_fd),
      event_times_(environment, setup.swap_fd),
      table_(TableOfCalls(*environment.driver)),
      targets_{&table_, environment.cublas, environment.cublaslt, this},
      session_id_(setup.session_id),
      shared_file_(std::make_shared<ipc::SessionFile>(std::move(setup.file))),
      file_(*shared_file_),
      channel_(std::move(setup.channel)),
      arena_(environment, TenantOf(setup, environment), setup.slot, ipc::UniqueFd(setup.swap_fd)),
      pinned_(environment, setup.slot, setup.pinned_fd),
      addresses_(&arena_, &pinned_, environment.backed, setup.slot),
      seen_devices_(setup.scheduling, environment.contexts.size()),
      streams_(environment, this, seen_devices_),
      frees_(environment),
      waits_(environment),
      iteration_ends_(environment, &file_.page()->iteration_times),
      scratch_(std::make_unique<std::byte[]>(ipc::kBodyBytesMax)),
      reply_(std::make_unique<std::byte[]>(ipc::limits::kMessageBytesMax)),
      awaited_(setup.generation) {}

bool SessionImpl::Reserve(std::string* error) {
  if (!arena_.Reserve(error)) return false;
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
  if (awaited_ != 0) {
    const CUresult restored = arena_.Restore();
    if (restored != CUDA_SUCCESS) {
      *error = absl::StrCat("its device memory cannot be mapped again (error ", restored, ")");
      return false;
    }
    asked_bytes_.store(arena_.bytes() + arena_.swapped_bytes());
    if (arena_.swapped()) lane_.Gone(false);
  }
  if (channel_.receiver != nullptr) channel_.receiver->Heed(&poked_);
  if (environment_.board != nullptr) {
    gate_ = std::make_unique<Gate>(environment_.board, session_id_, [this] { Poke(); });
    if (lane_.away()) gate_->Abandon();
  }
  return true;
}

void SessionImpl::Run() {
  thread_event_times = &event_times_;
  const OpenWaits::Current waits(&waits_);
  thread_id_ = gettid();
  if (!AwaitClient()) {
    if (!released_) End();
    return;
  }
  while (Alive()) {
    if (environment_.poison->poisoned.load(std::memory_order_relaxed)) {
      absl::SleepFor(kPoisonedNap);  // the process is about to exit
      continue;
    }
    if (release_.load(std::memory_order_relaxed) && TryLeave()) return LeaveToSuccessor();
    GiveWay(true);
    if (!PassGate()) continue;
    const std::span<const std::byte> message =
        channel_.receiver->NextUntrusted(SpinUs(), Patience(patience_us_));
    if (!message.empty()) {
      ServeMessage(message);
      if (gate_ != nullptr && gate_->unsettled()) gate_->Settle();
    } else if (channel_.receiver->broken()) {
      Lose("laneway: a message of this program had an impossible length; its session ends");
    } else {
      OnSilence();
    }
  }
  End();
}

SessionSnapshot SessionImpl::Snapshot() const {
  const bool going_out = going_out_.load();  // first: it may arrive at this moment
  const bool coming_in = coming_in_.load();
  const std::lock_guard<std::mutex> lock(command_mutex_);  // see AskForMemory
  const AssignedLane::Where where = lane_.where();
  // An order is a way from when the session hears of it: lanewayd waits for its end.
  scheduler::Place place;
  if (where != AssignedLane::Where::kHere) {
    place.residence = coming_in ? scheduler::Residence::kComingIn : scheduler::Residence::kHost;
    place.lane_saved = where == AssignedLane::Where::kOnHostWithLane;
  } else if (going_out) {
    place.residence = scheduler::Residence::kGoingOut;
  }
  return {.ops_received = file_.page()->ops_received.load(std::memory_order_relaxed),
          .device_bytes = arena_.bytes(),
          .pinned_bytes = pinned_.bytes(),
          .persistent_bytes = asked_bytes_.load(std::memory_order_relaxed),
          .lane_bytes = lane_.bytes(),
          .place = place};
}

void SessionImpl::UseDevice(uint32_t header_context) {
  const uint32_t seen = header_context & 0xff;  // counted from 1
  const int device = seen_devices_.At(seen == 0 || seen > seen_devices_.count() ? 0 : seen - 1);
  if (device == device_) return;
  driver_.cuCtxSetCurrent(environment_.contexts[static_cast<size_t>(device)]);
  device_ = device;
}

void SessionImpl::ServeMessage(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  file_.page()->ops_received.fetch_add(1, std::memory_order_relaxed);
  const bool was_quiet = quiet_.exchange(false);
  patience_us_ = kPatienceUs;
  unquiet_us_ = kUnquietUs;
  client_sleeps_ = false;
  into_capture_ = capture_ != nullptr && (header.context & ipc::kIntoCapture) != 0 &&
                  IsLibraryCallUntrusted(header.op);
  serves_work_ = IsWorkUntrusted(header.op) && !into_capture_;
  named_.clear();
  if (serves_work_) {
    at_boundary_ = false;
    busy_ = true;
    ++work_;
  } else if (gate_ == nullptr || gate_->resting()) {
    busy_ = false;
  }
  UseDevice(header.context);
  call_stream_ = nullptr;
  ipc::Writer reply({reply_.get() + sizeof header, ipc::kBodyBytesMax});
  const ipc::Served served =
      ipc::DispatchUntrusted(header.op, message.subspan(sizeof header), targets_, *this, &reply);
  if (into_capture_) AfterCapturedCall();
  if (served.outcome == ipc::Outcome::kMalformed) {
    LoseForMalformed(header.op);
    return;
  }
  if (call_stream_ != nullptr && !at_boundary_) work_stream_ = call_stream_;
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
    AfterSetStream();
  }
  if (wants_reply) SendReply(header, reply.size());
}

void SessionImpl::LoseForMalformed(uint16_t op_untrusted) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(op_untrusted);
  const std::string name = op.has_value() ? std::string(ipc::RowOf(*op).name)
                                          : absl::StrCat("of an unknown number ", op_untrusted);
  Lose(absl::StrCat("laneway: a malformed call, ", name, ", reached the worker; the session ends")
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
  while (Alive()) {
    const std::span<std::byte> room = channel_.sender->Reserve(header.bytes, kReplyWaitUs);
    if (room.empty()) continue;
    std::memcpy(room.data(), reply_.get(), header.bytes);
    channel_.sender->Commit(header.bytes);
    return;
  }
}

// --- the door ------------------------------------------------------------------------------------

bool SessionImpl::Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) {
  if (kind == ipc::HandleKind::kStream && into_capture_) {
    *driver_handle = capture_->capture();
    return true;
  }
  if (kind == ipc::HandleKind::kStream) {
    call_stream_ = id == ipc::HandleId::kLegacyStream
                       ? streams_.Legacy(device_)
                       : streams_.OfDriver(static_cast<CUstream>(handles_.Find(kind, id)));
    if (call_stream_ == nullptr) return false;
    streams_.Use(call_stream_);
    *driver_handle = call_stream_->driver;
    return true;
  }
  void* const handle = handles_.Find(kind, id);
  if (handle == nullptr) return false;
  if (kind == ipc::HandleKind::kEvent) call_event_ = id;
  if (kind == ipc::HandleKind::kBlas) OrderBlasStream(static_cast<cublasHandle_t>(handle));
  *driver_handle = handle;
  return true;
}

bool SessionImpl::MayName(ipc::HandleKind kind, ipc::HandleId id) {
  return handles_.MayName(kind, id);
}

void SessionImpl::Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) {
  handles_.Bind(kind, id, driver_handle);
  if (kind == ipc::HandleKind::kEvent) event_times_.OnBind(id, static_cast<CUevent>(driver_handle));
  if (kind == ipc::HandleKind::kBlas) SetUpBlas(static_cast<cublasHandle_t>(driver_handle));
}

void SessionImpl::Release(ipc::HandleKind kind, ipc::HandleId id) {
  void* const handle = handles_.Find(kind, id);
  if (kind == ipc::HandleKind::kEvent) {
    event_records_.erase(static_cast<CUevent>(handle));
    event_times_.OnRelease(id, static_cast<CUevent>(handle));
  }
  if (kind == ipc::HandleKind::kBlas) ForgetBlas(static_cast<cublasHandle_t>(handle));
  handles_.Release(kind, id);
}

// What the program has not taken for long is lost, as from the driver's own buffer.
void SessionImpl::Print(std::string_view text) {
  absl::MutexLock lock(&print_mutex_);
  file_.prints()->Append(text);
}

CUresult SessionImpl::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}

}  // namespace worker

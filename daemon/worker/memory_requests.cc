#include "daemon/worker/memory_requests.h"

#include <utility>
#include <vector>

#include "daemon/worker/poll_device.h"

namespace worker {
namespace {

namespace wire = ipc::control;

constexpr int64_t kKeeperRetryUs = 5'000;
constexpr int64_t kAnswerNapUs = 250'000;  // an answer rings the doorbell; this is only a net

}  // namespace

uint64_t MemoryRequests::DaemonNow() const {
  const DaemonLink* const daemon = around_.held->environment.daemon;
  return daemon == nullptr ? 0 : daemon->Daemon();
}

// --- questions -----------------------------------------------------------------------------------

template <class Answer>
std::optional<Answer> MemoryRequests::Ask(ipc::WaitState reason,
                                          const wire::WorkerToDaemon& question) {
  answered_by_ = 0;
  given_back_then_ = given_back_;
  DaemonLink* const link = around_.held->environment.daemon;
  if (link == nullptr) return std::nullopt;
  const Parking::Waiting waiting(around_.parking, reason);
  uint64_t asked = 0;
  std::optional<Answer> answer;
  const auto over = [&] {
    const uint64_t daemon = link->Daemon();
    // A session on the host has nothing to go on with: the next daemon brings it back.
    if (!Alive() || (daemon == 0 && !around_.away())) return true;
    if (asked != daemon && daemon != 0) {
      around_.parking->Expect();
      link->Post(question);
    }
    asked = daemon;
    answer = around_.parking->Take<Answer>();
    if (answer.has_value()) return true;
    around_.while_waiting();
    return false;
  };
  around_.parking->Until(
      {.over = over, .nap_us = [] { return kAnswerNapUs; }, .in_between = [this] { PollFrees(); }});
  around_.parking->ExpectNone();
  if (answer.has_value()) answered_by_ = asked;
  return answer;
}

std::optional<wire::AssignLane> MemoryRequests::AskForLane(const LaneQuestion& question) {
  return Ask<wire::AssignLane>(ipc::WaitState::kLane, question);
}

bool MemoryRequests::NoteGrantedLane(AssignedLane* lane, uint64_t bytes) {
  const base::MutexLock lock(&told_mutex_);
  if (IsForANewDaemon()) return false;
  lane->Granted(bytes);
  return true;
}

bool MemoryRequests::GaveBackSinceAsked() {
  around_.on_refusal();
  if (!PollFrees()) {
    const Parking::Waiting waiting(around_.parking, ipc::WaitState::kMemory);
    while (!PollFrees() && Alive()) AwaitDevice();
  }
  return given_back_ != given_back_then_;
}

// --- waits for room ------------------------------------------------------------------------------

void MemoryRequests::AwaitDevice() { AwaitPollPeriod(); }

// lanewayd grants by its own count. Memory outside that count, of a stray worker for example, may
// be in the way for a while.
bool MemoryRequests::AwaitOthers(uint64_t bytes) {
  if (!around_.held->arena.OthersHold(around_.call->device, bytes)) return false;
  const Parking::Waiting waiting(around_.parking, ipc::WaitState::kMemory);
  around_.before_idling();
  takes_ = true;
  around_.parking->Nap(kKeeperRetryUs);
  takes_ = false;
  return true;
}

// --- persistent memory ---------------------------------------------------------------------------

// A new daemon is told of these bytes by TellBytes(), or asked for them: it does not count what an
// earlier daemon has granted since.
bool MemoryRequests::NoteTaken(uint64_t bytes) {
  const base::MutexLock lock(&told_mutex_);
  if (IsForANewDaemon()) return false;
  told_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

GrantResult MemoryRequests::Take(uint64_t bytes, std::vector<RoomPlan::Attempt> attempts) {
  RoomPlan plan;
  plan.ask = [&]() -> RoomPlan::Answer {
    const std::optional<wire::MemoryAnswer> answer = Ask<wire::MemoryAnswer>(
        ipc::WaitState::kMemory,
        wire::MemoryNeeded{around_.session_id, bytes, static_cast<uint32_t>(around_.call->device)});
    if (!answer.has_value()) return {RoomRequest::Event::kUndecided};
    if (answer->result == 0) return {RoomRequest::Event::kDecided};
    return {RoomRequest::Event::kRefused, static_cast<CUresult>(answer->result)};
  };
  plan.take = [&] { return NoteTaken(bytes); };
  plan.undo = [&] { GiveMemoryBack(bytes); };
  plan.attempts = std::move(attempts);
  return Run(plan);
}

CUresult MemoryRequests::MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) {
  return ToCall(Take(bytes, {{map, [bytes] { return bytes; }}}));
}

// Without a daemon there is no one count of who waits, and no room is free.
CUresult MemoryRequests::MapIfFree(uint64_t bytes, const std::function<CUresult()>& map) {
  const std::optional<wire::MemoryAnswer> answer = Ask<wire::MemoryAnswer>(
      ipc::WaitState::kMemory,
      wire::MemoryIfFree{around_.session_id, bytes, static_cast<uint32_t>(around_.call->device)});
  if (!answer.has_value() || answer->result != 0 || !NoteTaken(bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = map();
  if (result != CUDA_SUCCESS) GiveMemoryBack(bytes);
  return result;
}

void MemoryRequests::GiveMemoryBack(uint64_t bytes) {
  told_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  ++given_back_;
  if (HasDaemon())
    around_.held->environment.daemon->Post(wire::MemoryFreed{around_.session_id, bytes});
}

void MemoryRequests::FreeRange(CUdeviceptr address) {
  Arena& arena = around_.held->arena;
  uint64_t bytes = 0;
  if (arena.Free(address, &bytes) == CUDA_SUCCESS && bytes != 0) GiveMemoryBack(bytes);
  around_.held->addresses.Gone(address);
}

}  // namespace worker

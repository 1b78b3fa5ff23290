#include "daemon/worker/session_impl.h"

#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/worker/device_description.h"
#include "ipc/overloaded.h"

namespace worker {

namespace wire = ipc::control;

// --- connecting the parts ------------------------------------------------------------------------

std::unique_ptr<Session> Session::Create(SessionSetup setup, const Environment& environment,
                                         std::string* error) {
  std::unique_ptr<SessionImpl> session =
      std::make_unique<SessionImpl>(std::move(setup), environment);
  if (!session->Reserve(error)) return nullptr;
  return session;
}

// Commands of other threads may run when the device has nothing of the session. Deferred frees are
// done before them, for a swap saves all ranges that are still there.
SessionImpl::SessionImpl(SessionSetup setup, const Environment& environment)
    : pages_(environment, &setup),
      life_(pages_.file.page(), setup.generation),
      parking_(pages_.file.page(), pages_.progress.get(),
               [this] { return turn_.IsQuiet() && held_.frees.Poll(); }),
      handover_({pages_.file.page(), &life_, &parking_, this}),
      notices_(environment, pages_.file.get()),
      held_(environment, setup, &pages_.prints),
      handlers_({&held_, &life_, &requests_, &lane_, &turn_, this, pages_.file.get(),
                 &notices_.bell, setup.swap_fd}),
      requests_({setup.session_id, &held_, &life_, &parking_, &handlers_.call(),
                 [this] { return swaps_.on_host(); }, [this] { turn_.OnWait(); },
                 [this] { turn_.FlushReports(); }}),
      drain_(environment, pages_.file.get()),
      iterations_(environment, pages_.file.page(), pages_.progress.get()),
      lane_({setup.session_id, &held_, &handlers_.call(), &life_, &requests_,
             [this](uint64_t lane) { return turn_.IsGranted(lane); },
             [this] { return turn_.IsQuiet(); }}),
      turn_({setup.session_id, &held_, &life_, &lane_, &notices_.bell, &notices_.callbacks,
             &iterations_, pages_.file.page(), [this] { return loop_.HasMessage(); }}),
      swaps_({setup.session_id, &held_, &lane_, &turn_, &requests_, &parking_}),
      wait_({&held_, &life_, &parking_, &handover_, &iterations_, &lane_, &turn_}),
      loop_({environment.poison, pages_.file.get(), &life_, &parking_, &handover_, &handlers_,
             &iterations_, &turn_, &notices_.bell, &notices_.courtesy},
            &wait_, std::move(setup.channel)) {}

bool SessionImpl::Reserve(std::string* error) {
  const Environment& environment = held_.environment;
  if (!held_.arena.Reserve(error)) return false;
  environment.driver->cuCtxSetCurrent(environment.contexts[0]);
  if (!pages_.file.Register(error)) return false;
  if (life_.generation() != 0 && !Restore(error)) return false;
  if (environment.board != nullptr) {
    turn_.JoinBoard(environment.board, [this] { parking_.Ring(); });
    if (swaps_.on_host()) turn_.gate()->OnSwappedOut();
  }
  return true;
}

// Another worker served the session until now.
bool SessionImpl::Restore(std::string* error) {
  const CUresult restored = held_.arena.Restore();
  if (restored != CUDA_SUCCESS) {
    *error = absl::StrCat("its device memory cannot be mapped again (error ", restored, ")");
    return false;
  }
  requests_.Inherit(held_.arena.bytes() + held_.arena.swapped_bytes());
  if (held_.arena.swapped()) swaps_.InheritSwapped();
  return true;
}

// --- the session's thread ------------------------------------------------------------------------

void SessionImpl::Run() {
  handlers_.BeginThread();
  const OpenWaits::Current waits(drain_.waits());
  notices_.courtesy.Begin();
  switch (handover_.AwaitClient()) {
    case SessionHandover::Entry::kServe:
      break;
    case SessionHandover::Entry::kLeave:
      return LeaveToSuccessor();
    case SessionHandover::Entry::kEnd:
      return End();
  }
  if (life_.generation() != 0) loop_.UseRings();
  if (loop_.Run() == SessionLoop::Outcome::kLeft) return LeaveToSuccessor();
  End();
}

bool SessionImpl::IsComplete() {
  if (loop_.midway()) return false;
  if (handlers_.modules().HasPartOfAnImage()) return false;
  if (!turn_.LaneIsEmpty()) return false;  // the lane is another's before it could go on
  for (StreamTable::Stream* stream : held_.streams.All()) {
    if (held_.environment.driver->cuStreamQuery(stream->driver) != CUDA_SUCCESS)
      return false;  // busy, or the device failed
  }
  return true;
}

void SessionImpl::LeaveToSuccessor() {
  handlers_.UseDevice(1);
  notices_.callbacks.Wait();
  iterations_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Detach();
  turn_.LeaveBoard();
  held_.pinned.Detach();
  pages_.file.LetGo();
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
  notices_.callbacks.Wait();
  drain_.Finish();
  iterations_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Clear();
  turn_.LeaveBoard();
  held_.pinned.Clear();
  pages_.file.LetGo();
}

// --- other threads -------------------------------------------------------------------------------

void SessionImpl::Stop() {
  life_.Stop();
  parking_.poked()->store(1);
  drain_.Stop();
  parking_.Ring();
}

SessionSnapshot SessionImpl::Snapshot() const {
  return {.ops_received = pages_.file.page()->ops_received.load(std::memory_order_relaxed),
          .device_bytes = held_.arena.bytes(),
          .pinned_bytes = held_.pinned.bytes(),
          .persistent_bytes = requests_.TellBytes(),
          .lane_bytes = lane_.TellBytes(),  // after TellBytes(): see NoteGrantedLane()
          .place = swaps_.Look()};
}

// A lane that answers no question is followed where the session is quiet, and only the last one: an
// earlier one may have ended by then.
void SessionImpl::OnDecision(const Decision& decision) {
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

// --- calls about the session itself --------------------------------------------------------------

CUresult SessionImpl::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}

CUresult SessionImpl::GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) {
  return DescribeDevice(held_, device, info);
}

CUresult SessionImpl::Boundary(const ipc::BoundaryInfo* info) {
  const StreamTable::Stream* const last = handlers_.streams().last_work();
  iterations_.OnBoundary(*info, last == nullptr ? nullptr : last->driver);
  turn_.OnBoundary();
  return CUDA_SUCCESS;
}

// Ranges that the program freed before count as given back for lanewayd. The session enters its
// lane anew before its next work.
CUresult SessionImpl::ContextReset(CUdevice) {
  drain_.WaitForStreams(&held_.streams);
  notices_.callbacks.Wait();
  (void)held_.frees.Poll();
  drain_.HoldAgain();
  iterations_.Clear();
  handlers_.DestroyObjects();
  handlers_.streams().times()->Clear(true);
  lane_.Exit();
  held_.arena.Clear();
  return CUDA_SUCCESS;
}

}  // namespace worker

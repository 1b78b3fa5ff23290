#include "daemon/worker/session_impl.h"

#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
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
      handlers_({&held_, &life_, &requests_, &lane_, &turn_, &iterations_,
                 [this] { teardown_.Reset(); }, pages_.file.get(), &notices_.bell, setup.swap_fd}),
      requests_({setup.session_id, &held_, &life_, &parking_, &handlers_.call(),
                 [this] { return swaps_.on_host(); }, [this] { turn_.OnWait(); },
                 [this] { turn_.FlushReports(); }}),
      iterations_(environment, pages_.file.page(), pages_.progress.get()),
      lane_({setup.session_id, &held_, &handlers_.call(), &life_, &requests_,
             [this](uint64_t lane) { return turn_.IsGranted(lane); },
             [this] { return turn_.IsQuiet(); }}),
      turn_({setup.session_id, &held_, &life_, &lane_, &notices_.bell, &notices_.callbacks,
             &iterations_, pages_.file.page(), [this] { return loop_.HasMessage(); }}),
      teardown_({&held_, &handlers_, &iterations_, &lane_, &turn_, &notices_, &pages_.file}),
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
  const OpenWaits::Current waits(teardown_.waits());
  notices_.courtesy.Begin();
  if (!Serve()) return teardown_.End();
  teardown_.LeaveToSuccessor();
  handover_.Left();
}

bool SessionImpl::Serve() {
  const SessionHandover::Entry entry = handover_.AwaitClient();
  if (entry != SessionHandover::Entry::kServe) return entry == SessionHandover::Entry::kLeave;
  if (life_.generation() != 0) loop_.UseRings();
  return loop_.Run() == SessionLoop::Outcome::kLeft;
}

// --- other threads -------------------------------------------------------------------------------

void SessionImpl::Stop() {
  life_.Stop();
  parking_.poked()->store(1);
  teardown_.Stop();
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

}  // namespace worker

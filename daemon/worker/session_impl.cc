#include "daemon/worker/session_impl.h"

#include <memory>

namespace worker {

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
      parking_(
          pages_.file.page(), pages_.progress.get(),
          [this] { return memory_.turn.IsQuiet() && held_.frees.Poll(); },
          [this](ipc::WaitState reason, int64_t begin_us) {
            handlers_.trace().OnWaited(reason, begin_us);
          }),
      quiesce_({&held_, &handlers_, &memory_.turn, &loop_}),
      handover_({pages_.file.page(), &life_, &parking_, &quiesce_}),
      notices_(environment, pages_.file.get()),
      held_(environment, setup, &pages_.prints),
      iterations_(environment, pages_.file.page(), pages_.progress.get()),
      memory_({setup.session_id, &held_, &life_, &parking_, &call_, &notices_, &iterations_,
               pages_.file.page(), [this] { return loop_.HasMessage(); },
               [this] { handlers_.GiveUpScratch(); }}),
      handlers_({&held_, &call_, &life_, &memory_.requests, &memory_.lane, &memory_.turn,
                 &iterations_, [this] { teardown_.Reset(); }, pages_.file.get(), &notices_.bell,
                 setup.swap_fd}),
      teardown_({&held_, &handlers_, &iterations_, &memory_.lane, &memory_.turn, &notices_,
                 &pages_.file}),
      wait_({&held_, &life_, &parking_, &handover_, &iterations_, &memory_.lane, &memory_.turn}),
      loop_({environment.poison, pages_.file.get(), &life_, &parking_, &handover_, &handlers_,
             &iterations_, &memory_.turn, &notices_.bell, &notices_.courtesy},
            &wait_, std::move(setup.channel)) {}

bool SessionImpl::Reserve(std::string* error) {
  if (!held_.arena.Reserve(error)) return false;
  held_.environment.driver->cuCtxSetCurrent(held_.environment.contexts[0]);
  if (!pages_.file.Register(error)) return false;
  if (life_.generation() != 0 && !memory_.Restore(error)) return false;
  memory_.JoinBoard();
  return true;
}

// --- the session's thread ------------------------------------------------------------------------

void SessionImpl::Run() {
  handlers_.BeginThread();
  const OpenWaits::Current waits(teardown_.waits());
  notices_.courtesy.Begin();
  if (loop_.Run() == SessionLoop::Outcome::kEnded) return teardown_.End();
  teardown_.LeaveToSuccessor();
  handover_.Left();
}

// --- other threads -------------------------------------------------------------------------------

void SessionImpl::Stop() {
  life_.Stop();
  teardown_.Stop();
  parking_.Ring();
}

SessionSnapshot SessionImpl::Snapshot() const {
  SessionSnapshot snapshot = memory_.Describe();
  snapshot.ops_received = pages_.file.page()->counts.ops_received.load(std::memory_order_relaxed);
  return snapshot;
}

}  // namespace worker

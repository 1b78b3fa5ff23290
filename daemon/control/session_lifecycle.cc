#include "daemon/control/session_lifecycle.h"

#include <cassert>
#include <optional>
#include <utility>

#include "daemon/common/heap.h"
#include "daemon/common/swap_file.h"
#include "daemon/control/hello_check.h"
#include "ipc/runtime_dir.h"

namespace control {

bool IsLegal(Phase from, Phase to) {
  switch (to) {
    case Phase::kQueued:
      return false;
    case Phase::kWaiting:  // again, when its worker was lost before it served
      return from == Phase::kQueued || from == Phase::kAttaching;
    case Phase::kAttaching:
      return from == Phase::kWaiting;
    case Phase::kRunning:  // at once: a program with its own context, and an adopted session
      return from == Phase::kQueued || from == Phase::kAttaching || from == Phase::kEntering;
    case Phase::kMoving:
      return from == Phase::kRunning || from == Phase::kEntering;
    case Phase::kEntering:
      return from == Phase::kMoving;
    case Phase::kEnding:
      return from == Phase::kAttaching || from == Phase::kRunning || from == Phase::kEntering;
    case Phase::kLost:
      return from == Phase::kRunning || from == Phase::kMoving || from == Phase::kEntering;
  }
  return false;
}

SessionLifecycle::SessionLifecycle(const Parts& parts, Settings settings, Listener* listener)
    : parts_(parts), settings_(std::move(settings)), listener_(listener) {}

void SessionLifecycle::Transition(Session* session, Phase to) {
  assert(IsLegal(session->phase, to));
  session->phase = to;
  switch (to) {
    case Phase::kQueued:
    case Phase::kRunning:
      break;
    case Phase::kWaiting:
      session->worker = 0;
      break;
    case Phase::kAttaching:
      ++session->attempts;
      break;
    case Phase::kMoving:
      BeginMoving(session);
      break;
    case Phase::kEntering:
      ++session->record.generation;
      break;
    case Phase::kEnding:
      BeginEnding(*session);
      break;
    case Phase::kLost:
      BeginLost(session);
      break;
  }
}

// The lost worker may have carried out the order to move the session's memory without an answer. So
// the order is settled by looking at the memory. Memory that is still on the host is brought back
// by the next worker.
void SessionLifecycle::BeginMoving(Session* session) {
  session->page->moving.store(1, std::memory_order_seq_cst);
  session->worker = 0;
  if (!session->swap.has_value()) return;
  const bool out = common::HoldsMemory(session->fds.swap.get());
  if (out && session->swap->out == 0) return;
  const ipc::control::Swap swap = *std::exchange(session->swap, std::nullopt);
  parts_.scheduler->Apply(
      scheduler::Swapped{swap.session_id, swap.out != 0, (swap.out != 0) == out, "it moved"});
}

void SessionLifecycle::BeginEnding(const Session& session) {
  const uint64_t id = session.record.session_id;
  if (settings_.kill_timeout_us > 0)
    parts_.loop->After(settings_.kill_timeout_us, [this, id] { listener_->OnOverdue(id); });
  parts_.scheduler->Apply(scheduler::SessionEnding{id});
}

void SessionLifecycle::BeginLost(Session* session) {
  const uint64_t id = session->record.session_id;
  parts_.lanes->ReleaseSession(id);
  session->fds.swap.Reset();
  session->progress = {};
  session->has_slot = false;
  parts_.scheduler->Apply(scheduler::SessionLeft{id});
}

void SessionLifecycle::CloseSocket(Session* session) {
  if (!session->socket.valid()) return;
  parts_.loop->Unwatch(session->socket.get());
  session->socket.Reset();
}

void SessionLifecycle::Refuse(Session* session, unsigned code, const std::string& sentence) {
  TellRefused(*session, code, sentence);
  Remove(session);
}

void SessionLifecycle::Remove(Session* session) {
  const uint64_t id = session->record.session_id;
  parts_.lanes->ReleaseSession(id);
  CloseSocket(session);
  parts_.loop->Unwatch(session->fds.process.get());
  // A worker that was killed could not remove the endpoint.
  ipc::UnlinkEndpoint(ipc::SessionEndpoint(settings_.runtime_dir, id));
  parts_.observers->End(*session);
  parts_.sessions->Remove(id);
  parts_.scheduler->Apply(scheduler::SessionLeft{id});
  parts_.lanes->OnSessionGone(id);
  common::TrimHeap();
}

}  // namespace control

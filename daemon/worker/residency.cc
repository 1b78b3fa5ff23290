#include "daemon/worker/residency.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "ipc/overloaded.h"

namespace worker {

namespace wire = ipc::control;

Residency::Residency(const Surroundings& around)
    : requests({around.session_id, around.held, around.life, around.parking, around.call,
                [this] { return swaps.on_host(); }, [this] { turn.OnWait(); },
                [this] { turn.FlushReports(); }, around.on_refusal}),
      lane({around.session_id, around.held, around.call, around.life, &requests,
            [this](uint64_t granted) { return turn.IsGranted(granted); },
            [this] { return turn.IsQuiet(); }}),
      turn({around.session_id, around.held, around.life, &lane, &around.notices->bell,
            &around.notices->callbacks, around.iterations, around.page, around.message_waits}),
      swaps({around.session_id, around.held, &lane, &turn, &requests, around.parking}),
      arena_(around.held->arena),
      arrays_(around.held->arrays),
      pinned_(around.held->pinned),
      board_(around.held->environment.board),
      parking_(*around.parking) {}

bool Residency::Restore(std::string* error) {
  const CUresult restored = arena_.Restore();
  if (restored != CUDA_SUCCESS) {
    *error = absl::StrCat("its device memory cannot be mapped again (error ", restored, ")");
    return false;
  }
  requests.Inherit(arena_.bytes() + arena_.swapped_bytes());
  if (arena_.swapped()) swaps.InheritSwapped();
  return true;
}

void Residency::JoinBoard() {
  if (board_ == nullptr) return;
  turn.JoinBoard(board_, [this] { parking_.Ring(); });
  if (swaps.on_host()) turn.gate()->OnSwappedOut();
}

// A lane that answers no question is followed where the session is quiet, and only the last one: an
// earlier one may have ended by then.
void Residency::OnDecision(const Decision& decision) {
  std::visit(ipc::Overloaded{
                 [this](const wire::Swap& swap) { swaps.OnOrder(swap); },
                 [this](const wire::AssignLane& assign) {
                   if (assign.result == 0) lane.Told(assign.lane);
                   if (assign.answer != 0) return parking_.Keep(assign);
                   parking_.Post([this, told = assign.lane] {
                     lane.FollowTold(told, swaps.on_host(), turn.IsOccupied());
                   });
                 },
                 [this](const wire::MemoryAnswer& answer) { parking_.Keep(answer); },
             },
             decision);
}

// The lane is asked after the requests: see MemoryRequests::NoteGrantedLane().
SessionSnapshot Residency::Describe() const {
  SessionSnapshot snapshot;
  snapshot.device_bytes = arena_.bytes() + arrays_.bytes();
  snapshot.pinned_bytes = pinned_.bytes();
  snapshot.persistent_bytes = requests.TellBytes();
  snapshot.lane_bytes = lane.TellBytes();
  snapshot.place = swaps.Look();
  return snapshot;
}

}  // namespace worker

#include "tests/protocol/sim_session.h"

#include <utility>

#include "ipc/overloaded.h"

namespace protocol {
namespace {

namespace wire = ipc::control;
using worker::LaneEvent;

constexpr int kSpinTurnsMax = 8;

}  // namespace

SimSession::SimSession(Scene* scene, const worker::Environment* environment,
                       const wire::SessionRecord& record, Program* program,
                       std::map<uint64_t, uint64_t>* tags)
    : scene_(scene),
      environment_(*environment),
      id_(record.session_id),
      program_(program),
      files_(program->shared_files()),
      lane_(scene, environment, record, program, tags),
      ranges_(environment, program, record),
      parking_(&files_->page(), &files_->progress(), [this] { return lane_.is_still(); }),
      requests_({id_, environment->daemon, &parking_, &turns_, [this] { return Alive(); },
                 [this] { return place_.on_host(); }, [this] { lane_.On(LaneEvent::kWait); },
                 [this] { lane_.gate().FlushReports(); }}) {
  thread_ = Run();
}

void SimSession::Step() {
  if (ended_) return;
  turns_.paused() ? turns_.Resume() : thread_.Start();
  if (!thread_.done()) return;
  ended_ = true;
  scene_->Change();
}

// --- the loop ------------------------------------------------------------------------------------

SimSession::Task SimSession::Run() {
  co_await turns_.NextTurn();
  while (Alive()) {
    if (release_ && lane_.MayLeave()) {
      PublishQuiet();
      if (program_->quiet()) {
        ranges_.DropAll();
        lane_.End(true);
        released_ = true;
        co_return;
      }
    }
    const bool passed = co_await PassGate();
    if (!passed) {
      co_await turns_.NextTurn();
      continue;
    }
    if (!Alive()) break;
    if (program_->ring.empty()) {
      OnSilence();
      co_await turns_.NextTurn();
      continue;
    }
    program_->Acknowledge();
    co_await Serve(program_->ring.front());
    if (lane_.gate().defers_report()) lane_.gate().FlushReports();
    co_await turns_.NextTurn();
  }
  co_await End();
}

SimSession::Get<bool> SimSession::PassGate() {
  worker::Gate& gate = lane_.gate();
  (void)parking_.RunCommands();
  if (lane_.IsItsTurn()) co_return true;
  if (gate.state() == worker::GateState::kRevoked) lane_.On(LaneEvent::kLook);
  if (!gate.closed() && !gate.idle()) co_return co_await TryEnterLane();
  if (program_->ring.empty()) {
    OnSilence();
    co_return false;
  }
  if (!AwaitsTurn(program_->ring.front())) co_return true;
  gate.ReportRunnable();
  if (gate.closed()) co_await Park();
  if (gate.closed()) co_return false;
  co_return co_await TryEnterLane();
}

bool SimSession::AwaitsTurn(const Op& op) const {
  if (op.kind == Op::kFree) return program_->swapped().held;
  return op.kind == Op::kWork;
}

SimSession::Get<bool> SimSession::TryEnterLane() {
  if (!parking_.RunCommands()) co_return false;
  lane_.Reclaim();
  CUresult result = CUDA_SUCCESS;
  if (lane_.assigned().Lacks(lane_.number() != 0))
    result = co_await GrowInLane(lane_.assigned().bytes());
  if (result == CUDA_SUCCESS) {
    SimRequests::Plan plan;
    plan.attempts = {[this] { return lane_.EnterGranted(); }};
    const worker::GrantResult entered = co_await requests_.Run(&plan);
    result = ToCall(entered);
  }
  if (result == CUDA_SUCCESS && !lane_.gate().closed() && !lane_.Has()) co_await turns_.NextTurn();
  if (result == CUDA_SUCCESS || !Alive())
    co_return result == CUDA_SUCCESS&& lane_.Has() && !lane_.gate().closed();
  scene_->Fail("a session cannot enter the lane that it was granted");
  co_return false;
}

SimSession::Task SimSession::Park() {
  worker::Gate& gate = lane_.gate();
  while (Alive() && gate.closed()) {
    (void)parking_.RunCommands();
    PublishQuiet();
    lane_.Reclaim();
    if (release_ && program_->quiet()) break;
    if (gate.BeginAwait()) {
      const int turns = scene_->calm ? 1 : static_cast<int>(1 + scene_->dice.Below(kSpinTurnsMax));
      for (int i = 0; i < turns && gate.closed() && Alive() && !release_; ++i)
        co_await turns_.NextTurn();
      gate.EndAwait();
    }
    if (gate.closed()) co_await turns_.NextTurn();
  }
  if (!Alive() || release_) gate.FlushReports();
}

void SimSession::OnSilence() {
  worker::Gate& gate = lane_.gate();
  lane_.On(LaneEvent::kSilence);
  PublishQuiet();
  (void)parking_.RunCommands();
  if (gate.idle()) {
    gate.ReportIdle(lane_.MayLeave());
    lane_.Reclaim();
    if (scene_->calm || scene_->dice.OneIn(2)) gate.FlushIdleReport();
    return;
  }
  if (!lane_.is_still()) return;
  lane_.Reclaim();
  gate.ReportIdle(lane_.MayLeave());
  scene_->Change();
}

SimSession::Task SimSession::Serve(Op op) {
  bool done = true;
  CUresult result = CUDA_SUCCESS;
  if (!op.live) lane_.ForgetLife();
  switch (op.kind) {
    case Op::kWork:
      lane_.Work(op);
      break;
    case Op::kBoundary:
      lane_.Boundary();
      break;
    case Op::kAllocate:
      result = co_await Allocate(op.units * kUnit);
      done = result == CUDA_SUCCESS;
      if (done) program_->persistent_units += op.units;
      break;
    case Op::kFree:
      if (!program_->swapped().held) FreeRange();
      break;
    case Op::kLane:
      result = co_await GrowInLane(op.units * kUnit);
      done = result == CUDA_SUCCESS;
      if (done) program_->lane_units = op.units;
      break;
    case Op::kLaneBack:
      co_await GiveLaneBack();
      break;
  }
  if (!Alive()) co_return;  // whoever goes on asks again
  if (op.kind == Op::kLane && !done) program_->lane_asked = program_->lane_units;
  program_->ring.pop_front();
  program_->NoteTaken();
  scene_->Change();
}

void SimSession::PublishQuiet() {
  if (program_->quiet() || !lane_.IsEmpty() || !lane_.is_still()) return;
  program_->NoteQuiet();
  scene_->Change();
}

SimSession::Task SimSession::End() {
  while (!lane_.is_still()) co_await turns_.NextTurn();
  ranges_.UnmapAll();
  lane_.End(false);
  program_->SetOnHost({});
}

// --- what it is told and tells -------------------------------------------------------------------

void SimSession::Obey(const worker::Decision& decision) {
  std::visit(
      ipc::Overloaded{
          [this](const wire::Swap& swap) {
            place_.Ordered(swap.out != 0);
            parking_.Post([this, swap] { DoSwap(swap.out != 0, swap.with_lane != 0); });
          },
          [this](const wire::AssignLane& assign) {
            if (assign.result == 0) lane_.assigned().Told(assign.lane);
            if (assign.answer != 0) return parking_.Keep(assign);
            parking_.Post([this, told = assign.lane] { lane_.FollowTold(told, place_.on_host()); });
          },
          [this](const wire::MemoryAnswer& answer) { parking_.Keep(answer); },
      },
      decision);
}

worker::SessionSnapshot SimSession::Snapshot() const {
  worker::SessionSnapshot snapshot;
  snapshot.persistent_bytes = requests_.TellBytes();
  snapshot.lane_bytes = lane_.assigned().TellBytes();
  snapshot.place = place_.Look();
  return snapshot;
}

std::string SimSession::Describe() const {
  return "session " + std::to_string(id_) + " " + lane_.Describe() +
         (place_.on_host() ? " on the host" : "") + (release_ ? " to leave" : "") +
         (stop_ ? " stopped" : "") + (program_->quiet() ? " quiet" : "") + " ring " +
         std::to_string(program_->ring.size()) + " first " +
         (program_->ring.empty() ? "-" : std::to_string(program_->ring.front().kind));
}

}  // namespace protocol

#include "daemon/worker/room_request.h"

#include <cassert>
#include <cstddef>

namespace worker {

CUresult ToCall(const GrantResult& result) {
  switch (result.grant) {
    case Grant::kGranted:
      return CUDA_SUCCESS;
    case Grant::kEnded:
      return CUDA_ERROR_OUT_OF_MEMORY;  // no program hears it
    case Grant::kRefused:
    case Grant::kFailed:
      break;
  }
  return result.error;
}

void RoomRequest::On(Event event) {
  if (event == Event::kEnded) return Finish(Grant::kEnded);
  switch (step_) {
    case Step::kAsk:
      undecided_ = event == Event::kUndecided;
      if (event == Event::kRefused) {
        step_ = Step::kRecount;
      } else {
        Try(Frees::kUnknown);
      }
      return;
    case Step::kRecount:
      if (event != Event::kGaveBack) return Finish(Grant::kRefused);
      step_ = Step::kAsk;
      return;
    case Step::kTry:
      return OnTried(event);
    case Step::kPoll:
      return Try(event == Event::kAllFree ? Frees::kAllFree : Frees::kStillUsed);
    case Step::kAwaitDevice:
    case Step::kAwaitOthers:
      if (event == Event::kNobodyHolds) return Finish(Grant::kRefused);
      step_ = Step::kPoll;
      return;
    case Step::kDone:
      break;
  }
  assert(false);
}

// Frees that came between two tries may be enough, so a try follows each poll.
void RoomRequest::OnTried(Event event) {
  switch (event) {
    case Event::kDaemonCame:
      step_ = Step::kAsk;
      return;
    case Event::kMade:
      return Try(Frees::kUnknown);
    case Event::kMadeLast:
      return Finish(Grant::kGranted);
    case Event::kNoRoom:
      step_ = frees_ == Frees::kUnknown   ? Step::kPoll
              : frees_ == Frees::kAllFree ? Step::kAwaitOthers
                                          : Step::kAwaitDevice;
      return;
    default:
      return Finish(Grant::kFailed);
  }
}

namespace {

class Runner {
 public:
  using Step = RoomRequest::Step;
  using Event = RoomRequest::Event;

  Runner(RoomWorld* world, const RoomPlan& plan)
      : world_(*world), plan_(plan), request_(static_cast<bool>(plan.ask)) {}

  GrantResult Run() {
    while (request_.step() != Step::kDone) request_.On(Act());
    if (request_.grant() != Grant::kGranted) Undo();
    return {request_.grant(), error_};
  }

 private:
  Event Act() {
    switch (request_.step()) {
      case Step::kAsk:
        return Ask();
      case Step::kRecount:
        return world_.GaveBackSinceAsked() && world_.Alive() ? Event::kGaveBack
                                                             : Event::kGaveNothing;
      case Step::kTry:
        return Try();
      case Step::kPoll:
        return world_.PollFrees() ? Event::kAllFree : Event::kStillUsed;
      case Step::kAwaitDevice:
        world_.AwaitDevice();
        return world_.Alive() ? Event::kWaited : Event::kEnded;
      case Step::kAwaitOthers:
        if (!world_.AwaitOthers(plan_.attempts[done_].lacks())) return Event::kNobodyHolds;
        return world_.Alive() ? Event::kWaited : Event::kEnded;
      case Step::kDone:
        break;
    }
    return Event::kEnded;
  }

  Event Ask() {
    Undo();
    done_ = 0;
    for (;;) {
      const RoomPlan::Answer answer = plan_.ask();
      error_ = answer.refusal;
      if (answer.event == Event::kRefused) return Event::kRefused;
      if (!world_.Alive()) return Event::kEnded;
      if (plan_.take && !plan_.take()) continue;
      taken_ = true;
      return answer.event;
    }
  }

  Event Try() {
    if (done_ == plan_.attempts.size()) return Event::kMadeLast;
    const RoomPlan::Attempt& attempt = plan_.attempts[done_];
    if (request_.is_first_try()) world_.PollFrees();
    if (request_.undecided() && world_.HasDaemon()) return Event::kDaemonCame;
    error_ = attempt.make();
    if (error_ == CUDA_SUCCESS)
      return ++done_ == plan_.attempts.size() ? Event::kMadeLast : Event::kMade;
    if (error_ != CUDA_ERROR_OUT_OF_MEMORY || !attempt.lacks) return Event::kFailed;
    return world_.Alive() ? Event::kNoRoom : Event::kEnded;
  }

  void Undo() {
    if (taken_ && plan_.undo) plan_.undo();
    taken_ = false;
  }

  RoomWorld& world_;
  const RoomPlan& plan_;
  RoomRequest request_;
  size_t done_ = 0;     // attempts that have succeeded
  bool taken_ = false;  // what was granted is noted
  CUresult error_ = CUDA_SUCCESS;
};

}  // namespace

GrantResult RunRoomRequest(RoomWorld* world, const RoomPlan& plan) {
  return Runner(world, plan).Run();
}

}  // namespace worker

#include "tests/protocol/sim_requests.h"

namespace protocol {

namespace wire = ipc::control;
using Event = worker::RoomRequest::Event;
using Step = worker::RoomRequest::Step;

// --- questions -----------------------------------------------------------------------------------

template <class AnswerType>
SimRequests::Get<std::optional<AnswerType>> SimRequests::Ask(wire::WorkerToDaemon question) {
  answered_by_ = 0;
  given_back_then_ = given_back_;
  uint64_t asked = 0;
  std::optional<AnswerType> answer;
  const auto over = [&] {
    const uint64_t daemon = around_.daemon->Daemon();
    if (!around_.alive() || (daemon == 0 && !around_.away())) return true;
    if (asked != daemon && daemon != 0) {
      around_.parking->Expect();
      around_.daemon->Post(question);
    }
    asked = daemon;
    answer = around_.parking->Take<AnswerType>();
    if (answer.has_value()) return true;
    around_.while_waiting();
    return false;
  };
  for (bool ready = over(); !ready; ready = over()) {
    (void)around_.parking->RunCommands();
    ready = over();
    if (ready) break;
    co_await around_.turns->NextTurn();
  }
  around_.parking->ExpectNone();
  if (answer.has_value()) answered_by_ = asked;
  co_return answer;
}

SimRequests::Get<std::optional<wire::AssignLane>> SimRequests::AskForLane(uint64_t bytes) {
  return Ask<wire::AssignLane>(wire::LaneNeeded{around_.session, bytes, 0});
}

SimRequests::Get<SimRequests::Answer> SimRequests::AskForMemory(uint64_t bytes) {
  const std::optional<wire::MemoryAnswer> answer =
      co_await Ask<wire::MemoryAnswer>(wire::MemoryNeeded{around_.session, bytes, 0});
  if (!answer.has_value()) co_return Answer{Event::kUndecided};
  if (answer->result == 0) co_return Answer{Event::kDecided};
  co_return Answer{Event::kRefused, static_cast<CUresult>(answer->result)};
}

// --- a request -----------------------------------------------------------------------------------

SimRequests::Get<worker::GrantResult> SimRequests::Run(const Plan* plan) {
  Request request{*plan, worker::RoomRequest(static_cast<bool>(plan->ask))};
  while (request.machine.step() != Step::kDone) {
    const Event event = co_await Act(&request);
    request.machine.On(event);
  }
  if (request.machine.grant() != worker::Grant::kGranted) Undo(&request);
  co_return worker::GrantResult{request.machine.grant(), request.error};
}

// What the program freed is free at once: the device is never late with it here.
SimRequests::Get<Event> SimRequests::Act(Request* request) {
  switch (request->machine.step()) {
    case Step::kAsk: {
      const Event event = co_await Question(request);
      co_return event;
    }
    case Step::kRecount:
      co_return given_back_ != given_back_then_&& around_.alive() ? Event::kGaveBack
                                                                  : Event::kGaveNothing;
    case Step::kTry:
      co_return Try(request);
    case Step::kPoll:
      co_return Event::kAllFree;
    case Step::kAwaitDevice:
    case Step::kAwaitOthers: {
      const Event event = co_await AwaitOthers();
      co_return event;
    }
    case Step::kDone:
      break;
  }
  co_return Event::kEnded;
}

SimRequests::Get<Event> SimRequests::Question(Request* request) {
  Undo(request);
  request->done = 0;
  for (;;) {
    Get<Answer> question = request->plan.ask();
    const Answer answer = co_await question;
    request->error = answer.refusal;
    if (answer.event == Event::kRefused) co_return Event::kRefused;
    if (!around_.alive()) co_return Event::kEnded;
    const bool noted = !request->plan.take || request->plan.take();
    if (!noted) continue;
    request->taken = true;
    co_return answer.event;
  }
}

SimRequests::Get<Event> SimRequests::AwaitOthers() {
  around_.before_idling();
  takes_ = true;
  (void)around_.parking->RunCommands();
  co_await around_.turns->NextTurn();
  takes_ = false;
  co_return around_.alive() ? Event::kWaited : Event::kEnded;
}

Event SimRequests::Try(Request* request) const {
  const std::vector<std::function<CUresult()>>& attempts = request->plan.attempts;
  if (request->done == attempts.size()) return Event::kMadeLast;
  if (request->machine.undecided() && around_.daemon->Daemon() != 0) return Event::kDaemonCame;
  request->error = attempts[request->done]();
  if (request->error == CUDA_SUCCESS)
    return ++request->done == attempts.size() ? Event::kMadeLast : Event::kMade;
  if (request->error != CUDA_ERROR_OUT_OF_MEMORY) return Event::kFailed;
  return around_.alive() ? Event::kNoRoom : Event::kEnded;
}

void SimRequests::Undo(Request* request) {
  if (request->taken && request->plan.undo) request->plan.undo();
  request->taken = false;
}

// --- persistent memory ---------------------------------------------------------------------------

bool SimRequests::IsForANewDaemon() const {
  const uint64_t daemon = around_.daemon->Daemon();
  return daemon != 0 && daemon != answered_by_;
}

bool SimRequests::NoteGrantedLane(worker::AssignedLane* lane, uint64_t bytes) {
  if (IsForANewDaemon()) return false;
  lane->Granted(bytes);
  return true;
}

bool SimRequests::NoteTaken(uint64_t bytes) {
  if (IsForANewDaemon()) return false;
  told_bytes_ += bytes;
  return true;
}

SimRequests::Get<CUresult> SimRequests::TakeAndMap(uint64_t bytes,
                                                   const std::function<CUresult()>* map) {
  Plan plan;
  plan.ask = [this, bytes] { return AskForMemory(bytes); };
  plan.take = [this, bytes] { return NoteTaken(bytes); };
  plan.undo = [this, bytes] { GiveBack(bytes); };
  plan.attempts = {*map};
  const worker::GrantResult result = co_await Run(&plan);
  co_return ToCall(result);
}

void SimRequests::GiveBack(uint64_t bytes) {
  told_bytes_ -= bytes;
  ++given_back_;
  if (around_.daemon->Daemon() != 0)
    around_.daemon->Post(wire::MemoryFreed{around_.session, bytes});
}

}  // namespace protocol

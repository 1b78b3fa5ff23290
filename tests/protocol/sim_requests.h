// A session's requests for memory in a simulated worker: the real machine of a request and the real
// matching of answers, driven as daemon/worker/memory_requests.cc and room_request.cc drive them.
// Where the session's thread would sleep it gives its turn away. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/room_request.h"
#include "daemon/worker/session.h"
#include "tests/harness/task.h"

namespace protocol {

class SimRequests {
 public:
  template <class T>
  using Get = harness::Task<T>;
  using Answer = worker::RoomPlan::Answer;

  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session;
    worker::DaemonLink* daemon;
    worker::Parking* parking;
    harness::Turns* turns;
    std::function<bool()> alive;
    std::function<bool()> away;           // the session's memory is on the host
    std::function<void()> while_waiting;  // leaves a lane that it is to leave
    std::function<void()> before_idling;
  };
  // As worker::RoomPlan; `ask` may wait.
  struct Plan {
    std::function<Get<Answer>()> ask;
    std::function<bool()> take;
    std::function<void()> undo;
    std::vector<std::function<CUresult()>> attempts;
  };
  explicit SimRequests(const Surroundings& around) : around_(around) {}
  SimRequests(const SimRequests&) = delete;

  // `plan` and `map` outlive the request.
  Get<worker::GrantResult> Run(const Plan* plan);
  Get<CUresult> TakeAndMap(uint64_t bytes, const std::function<CUresult()>* map);
  // The answer; empty when no daemon decides, or the session ends.
  Get<std::optional<ipc::control::AssignLane>> AskForLane(uint64_t bytes);
  void GiveBack(uint64_t bytes);
  // As worker::MemoryRequests.
  bool NoteGrantedLane(worker::AssignedLane* lane, uint64_t bytes);
  // What another worker left of the session.
  void Inherit(uint64_t bytes) { told_bytes_ = bytes; }
  bool TakesMemory() const { return takes_ || around_.parking->HasAnswer(); }
  // Persistent memory that lanewayd knows of.
  uint64_t TellBytes() const { return told_bytes_; }

 private:
  // One request under way.
  struct Request {
    const Plan& plan;
    worker::RoomRequest machine;
    size_t done = 0;     // attempts that have succeeded
    bool taken = false;  // what was granted is noted
    CUresult error = CUDA_SUCCESS;
  };
  Get<worker::RoomRequest::Event> Act(Request* request);
  Get<worker::RoomRequest::Event> Question(Request* request);
  Get<worker::RoomRequest::Event> AwaitOthers();
  worker::RoomRequest::Event Try(Request* request) const;
  static void Undo(Request* request);

  template <class AnswerType>
  Get<std::optional<AnswerType>> Ask(ipc::control::WorkerToDaemon question);
  Get<Answer> AskForMemory(uint64_t bytes);
  bool NoteTaken(uint64_t bytes);
  bool IsForANewDaemon() const;

  const Surroundings around_;
  bool takes_ = false;            // it waits until what it was granted is there
  uint64_t answered_by_ = 0;      // the daemon whose answer Ask() returned last; 0: none did
  uint64_t given_back_ = 0;       // how often lanewayd was told of less
  uint64_t given_back_then_ = 0;  // at the last question
  uint64_t told_bytes_ = 0;
};

}  // namespace protocol

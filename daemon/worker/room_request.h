// One request for memory, from the question to lanewayd until the session has the memory: an
// explicit machine, and the loop that runs the machine.
//
//     ask --granted, or no daemon decides--> try --made--> done
//     ask --refused--> recount --the program had freed some--> ask; otherwise done
//     try --no room--> poll the program's frees, try; then wait for the device, or for others
//     try, undecided --a daemon came--> ask: it would count on what this session waits for
//
// A refusal counts memory that the program has freed while the device still uses it; CUDA's own
// cuMemFree would have waited for that work. Thread safety: one thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace worker {

enum class Grant {
  kGranted,
  kRefused,  // a limit is in the way, or no other session holds what is lacking
  kFailed,   // an attempt failed for another reason than room
  kEnded,    // the session ends
};

// The outcome of a request. `error` is what lanewayd or the driver said; it goes to the program.
struct GrantResult {
  Grant grant = Grant::kGranted;
  CUresult error = CUDA_SUCCESS;
};
// At the edge: what the program's call returns.
CUresult ToCall(const GrantResult& result);

class RoomRequest {
 public:
  enum class Step { kAsk, kRecount, kTry, kPoll, kAwaitDevice, kAwaitOthers, kDone };
  enum class Event {
    // after kAsk
    kDecided,    // lanewayd has granted it
    kUndecided,  // no daemon was there
    kRefused,
    // after kRecount: whether memory was given back since the question
    kGaveBack,
    kGaveNothing,
    // after kTry
    kDaemonCame,  // instead of an attempt
    kMade,
    kMadeLast,
    kNoRoom,
    kFailed,
    // after kPoll
    kAllFree,
    kStillUsed,
    // after kAwaitDevice and kAwaitOthers
    kWaited,
    kNobodyHolds,  // what is lacking: a wait would not help
    // at any time
    kEnded,
  };

  explicit RoomRequest(bool asks) : step_(asks ? Step::kAsk : Step::kTry) {}

  Step step() const { return step_; }
  // REQUIRES: step() is kDone.
  Grant grant() const { return grant_; }
  // No daemon has decided: attempts go by what the keeper has.
  bool undecided() const { return undecided_; }
  // The next attempt is the first one since the last success.
  bool is_first_try() const { return frees_ == Frees::kUnknown; }

  // REQUIRES: the event may follow step().
  void On(Event event);

 private:
  enum class Frees { kUnknown, kAllFree, kStillUsed };
  void OnTried(Event event);
  void Try(Frees frees) {
    step_ = Step::kTry;
    frees_ = frees;
  }
  void Finish(Grant grant) {
    step_ = Step::kDone;
    grant_ = grant;
  }

  Step step_;
  Frees frees_ = Frees::kUnknown;
  bool undecided_ = false;
  Grant grant_ = Grant::kEnded;
};

// What the loop needs of the session.
class RoomWorld {
 public:
  virtual ~RoomWorld() = default;
  virtual bool Alive() const = 0;
  virtual bool HasDaemon() const = 0;
  // Frees what the device is done with; false when it still uses some of what the program freed.
  virtual bool PollFrees() = 0;
  // Waits for a moment of the device's work.
  virtual void AwaitDevice() = 0;
  // Waits until others may have given memory up; false when they hold less than `bytes`.
  virtual bool AwaitOthers(uint64_t bytes) = 0;
  // Waits for all frees. Whether any memory was given back since the last question.
  virtual bool GaveBackSinceAsked() = 0;
};

struct RoomPlan {
  struct Answer {
    RoomRequest::Event event;  // kDecided, kUndecided or kRefused
    CUresult refusal = CUDA_SUCCESS;
  };
  struct Attempt {
    // CUDA_ERROR_OUT_OF_MEMORY: no room.
    std::function<CUresult()> make;
    std::function<uint64_t()> lacks;  // the bytes that may be lacking; empty: a try is not repeated
  };
  std::function<Answer()> ask;    // empty: lanewayd has decided already
  std::function<bool()> take;     // notes what was granted; false: a daemon came, ask it
  std::function<void()> undo;     // gives back what take() noted
  std::vector<Attempt> attempts;  // all must succeed, in this order
};

GrantResult RunRoomRequest(RoomWorld* world, const RoomPlan& plan);

}  // namespace worker

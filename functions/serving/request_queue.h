// Which request an engine works on, which wait, and what becomes of one whose engine is lost.
//
// Requests are answered in the order of their coming, one at a time. A request whose engine was
// lost is tried once more with the next engine: a function remembers nothing, so that to run it
// again does no harm. Lost again, the request fails.
//
// Thread safety: none; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace functions {

enum class EngineState : uint8_t {
  kNone,      // lost, or not started: one is to be started when a request waits
  kStarting,  // it loads the function
  kIdle,
  kBusy,
};

class RequestQueue {
 public:
  using Client = uint64_t;

  explicit RequestQueue(size_t waiting_max) : waiting_max_(waiting_max) {}

  // False: too many wait.
  bool Add(Client client);
  // The client has left. A request that the engine works on is finished for nobody.
  void Remove(Client client);

  // --- what became of the engine
  void OnStart() { state_ = EngineState::kStarting; }
  void OnReady() { state_ = EngineState::kIdle; }
  // Whose request is answered. REQUIRES: busy.
  Client OnAnswer();
  // Whose request fails now; nothing: it is tried again, or there was none.
  std::optional<Client> OnLost();

  // --- what is to be done
  bool WantsEngine() const { return state_ == EngineState::kNone && !waiting_.empty(); }
  // The request to send to the engine, which is busy from then on. Nothing: none, or not now.
  std::optional<Client> TakeNext();

  // Whether the engine works on this one's request.
  bool IsAtEngine(Client client) const {
    return state_ == EngineState::kBusy && current_ == client;
  }
  EngineState state() const { return state_; }
  bool empty() const { return waiting_.empty() && state_ != EngineState::kBusy; }

 private:
  const size_t waiting_max_;
  EngineState state_ = EngineState::kNone;
  std::deque<Client> waiting_;
  Client current_ = 0;      // of kBusy, and of a try that follows
  bool is_second_ = false;  // the request at the front was tried before
};

}  // namespace functions

// The request pool (Orca, section 4.2): accepted requests as sequences of tokens, and their order.
//
// A sequence is one answer: the prompt and the tokens generated so far. A request for several
// copies of an answer may be one sequence until its prompt is computed (Sequence::copies). Keys are
// fixed when a request arrives: a sequence that lost its memory waits where it would have waited.
// Thread safety: one thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "scheduler/batching/iteration/event.h"
#include "scheduler/batching/iteration/prefix_cache.h"

namespace scheduler::batching::iteration {

enum class Order : uint8_t {
  kFcfs,      // by arrival
  kPriority,  // by class; waiting for Options::aging_us is worth one class
  kDeadline,  // by deadline; a request without one is due Options::aging_us after it came
};

// Smaller is first.
struct Key {
  int64_t rank = 0;     // of the order
  uint64_t number = 0;  // of the request: ids ascend
  int32_t copy = 0;
  auto operator<=>(const Key&) const = default;
};
// A request of class p is passed by those alone that come within p * aging_us after it. Under
// kDeadline a request is passed by none that comes later than its deadline, or than aging_us.
int64_t RankOf(Order order, const Arrived& about, int64_t now_us, int64_t aging_us);

enum class Phase : uint8_t {
  kWaiting,  // has no blocks
  kRunning,  // has blocks
  kLeaving,  // has ended; a step in flight still uses the blocks
};
// Whether a sequence may go from one phase to the other.
constexpr bool Legal(Phase from, Phase to) {
  if (from == Phase::kWaiting) return to == Phase::kRunning;
  return from == Phase::kRunning && to != Phase::kRunning;
}

// A sequence's part in the steps that were not answered yet.
struct InFlight {
  int32_t steps = 0;         // that have a row of it
  int32_t planned = 0;       // tokens whose KV is on the device when these are done
  int32_t drawing = 0;       // how many of these draw its next token
  int32_t drawn_at = -1;     // which sample of the last of these its next token is; -1: none
  bool needs_drawn = false;  // see Arrived
};

struct Sequence {
  Key key;
  int32_t copies = 1;  // > 1: so many answers begin when the prompt is computed
  std::vector<Token> tokens;
  int32_t prompt = 0;       // the first so many of them
  int32_t tokens_max = 0;   // prompt and answer; Orca's max_tokens
  int64_t due_us = kNever;  // when the answer is worth nothing any more
  uint64_t salt = 0;
  Phase phase = Phase::kWaiting;
  std::optional<Ending> ended;  // has its last token, and is told with its batch (whole_request.h)
  int32_t deaths = 0;    // engines that were lost with a step that had a row of this sequence
  int32_t computed = 0;  // tokens whose KV is on the device
  InFlight in_flight;
  int32_t told = 0;  // blocks of the table that the engine knows
  std::vector<BlockId> blocks;
  CachedPrefix published;  // the full blocks that the prefix cache knows

  RequestId request() const { return key.number; }
  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
  // Tokens to compute before the next one, beside those in flight.
  int32_t pending() const { return size() + in_flight.drawing - in_flight.planned; }
};

// Engines that die with the same request in the step: from here on it runs alone.
constexpr int32_t kSuspectDeaths = 2;

inline int32_t BlocksFor(int32_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

class Requests {
 public:
  struct ByKey {
    bool operator()(const Sequence* one, const Sequence* other) const {
      return one->key < other->key;
    }
  };
  struct ByDue {
    bool operator()(const Sequence* one, const Sequence* other) const {
      return one->due_us != other->due_us ? one->due_us < other->due_us : one->key < other->key;
    }
  };
  using Ordered = std::set<Sequence*, ByKey>;

  // Waiting, or running when it is a copy of a running sequence.
  Sequence* Add(std::unique_ptr<Sequence> sequence);
  // REQUIRES: Legal. The caller has taken or given back the blocks.
  void Move(Sequence* sequence, Phase phase);
  // Forgets the sequence. REQUIRES: no blocks, not in flight.
  void Erase(Sequence* sequence);
  // The sequence has been in the step of an engine that was lost.
  void CountDeath(Sequence* sequence);
  // An answer ends sooner: at so many tokens, the prompt included.
  void Clip(Sequence* sequence, int32_t tokens_max);
  // A sequence of several answers is the first of them from now on.
  void Divide(Sequence* sequence);

  const Ordered& waiting() const { return waiting_; }
  const Ordered& running() const { return running_; }
  Sequence* Find(RequestId request, int32_t copy) const;  // REQUIRES: it is there
  // Those of the request, in any phase.
  std::vector<Sequence*> Of(RequestId request) const;
  // All of them, by key.
  std::vector<Sequence*> All() const;
  // The first whose deadline passes; null: none has one.
  Sequence* FirstDue() const { return by_due_.empty() ? nullptr : *by_due_.begin(); }
  // Waits for a step of its own; null: none.
  Sequence* FirstSuspect() const { return suspects_.empty() ? nullptr : *suspects_.begin(); }
  // The sequence that may begin next, by key; a suspect only when nothing runs, and then before all
  // others. Null: none may.
  Sequence* NextToBegin() const;

  int64_t waiting_tokens() const {
    return waiting_tokens_;
  }  // to compute at most, answers included
  int32_t running_answers() const { return running_answers_; }
  bool empty() const { return by_request_.empty(); }

 private:
  void Index(Sequence* sequence);
  void Unindex(Sequence* sequence);

  using ByRequest = std::unordered_map<RequestId, std::vector<std::unique_ptr<Sequence>>>;

  ByRequest by_request_;
  Ordered waiting_;
  Ordered running_;
  Ordered suspects_;
  std::set<Sequence*, ByDue> by_due_;
  int64_t waiting_tokens_ = 0;
  int32_t running_answers_ = 0;
};

}  // namespace scheduler::batching::iteration

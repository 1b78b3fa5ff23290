// Plays a program's iterations through its template, as a client and a worker would: whatever is
// sent or replayed lands in one stream, which must equal what the program asked for.
// Thread safety: none.
#pragma once

#include <cstddef>

#include "replay/match.h"

namespace replay::testing {

class ReplayedRun {
 public:
  explicit ReplayedRun(Template* known) : known_(known) {}

  // The program asks for an operation; a wait comes first where its key says so.
  void Op(const OpView& op) {
    if (op.key.waited) Wait();
    asked_.Add(op);
    Do(MatchEvent::kOp, op);
  }
  // The host waits: nothing may be held then.
  void Wait() {
    Do(MatchEvent::kWait, {});
    in_order_ = in_order_ && done_ == asked_;
  }
  // The iteration ends, and is learned. Whether all that was asked for was done, in order.
  bool End() {
    Do(MatchEvent::kBoundary, {});
    const bool right = in_order_ && done_ == asked_;
    if (right) known_->Learn(asked_);
    asked_.Clear();
    done_.Clear();
    return right;
  }
  bool Iteration(const OpStream& ops) {
    for (size_t i = 0; i < ops.size(); ++i) Op(ops.at(i));
    return End();
  }

  MatchAction last() const { return last_; }
  size_t replayed() const { return replayed_; }  // operations
  size_t messages() const { return messages_; }  // for bodies
  void ResetCounts() { replayed_ = messages_ = 0; }

 private:
  void Do(MatchEvent event, const OpView& op) {
    const MatchStep step = Step(*known_, event, op, &match_);
    last_ = step.action;
    switch (step.action) {
      case MatchAction::kNone:
      case MatchAction::kHold:
        return;
      case MatchAction::kReplay:
        replayed_ += match_.body->ops.size();
        ++messages_;
        in_order_ = in_order_ && match_.values.size() == match_.body->patches.size() &&
                    Fill(*match_.body, match_.body->ops.size(), match_.values, &done_);
        return;
      case MatchAction::kSend:
        done_.Add(op);
        return;
      case MatchAction::kSendHeld:
      case MatchAction::kSendHeldThenOp:
        in_order_ = in_order_ && Fill(*match_.body, step.held, match_.values, &done_);
        if (step.action == MatchAction::kSendHeldThenOp) done_.Add(op);
        return;
    }
  }

  Template* const known_;
  Match match_;
  OpStream asked_, done_;
  bool in_order_ = true;
  MatchAction last_ = MatchAction::kNone;
  size_t replayed_ = 0, messages_ = 0;
};

}  // namespace replay::testing

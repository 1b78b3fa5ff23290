// Decides whether the client holds back messages that may repeat a chunk. The client judges by what
// became of the messages that it held before.
//
// The device gets what is held later than it could. That is worth a repeat, but a run that differs
// in the end has waited for nothing: a loop of 50 launches of which the last sixteen differed each
// time took 1.17 of its time. So there is an account, in messages. A run that is repeated pays in
// as many as it has, up to kMost, and a run that differs costs as many as were held. Once the
// account is overdrawn, the next runs are not held: at first kFirstRest of them, and twice as many
// each time that the first run after a rest differs again, up to kLongestRest. A full account
// forgives that.
//
//     holding --- overdrawn ---> resting --- so many runs later ---> holding, with nothing left
//
// Thread safety: none; pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ipc {

class HoldTrust {
 public:
  static constexpr int32_t kMost = 256;                            // messages
  static constexpr uint32_t kFirstRest = 32, kLongestRest = 1024;  // runs

  // To be asked once for each run that could be held.
  bool MayHold() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  // The end of a run of which the client held so many messages.
  void OnRepeated(uint32_t messages) {
    balance_ = std::min(balance_ + static_cast<int32_t>(messages), kMost);
    if (balance_ == kMost) rest_ = 0;
  }
  void OnDiffered(uint32_t messages) {
    balance_ -= static_cast<int32_t>(messages);
    if (balance_ >= 0) return;
    balance_ = 0;
    rest_ = rest_ == 0 ? kFirstRest : std::min(rest_ * 2, kLongestRest);
    left_ = rest_;
  }

 private:
  int32_t balance_ = kMost;
  uint32_t rest_ = 0;  // runs of the last rest; 0: it is forgiven
  uint32_t left_ = 0;  // of this rest
};

}  // namespace ipc

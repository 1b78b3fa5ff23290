#include "functions/serving/request_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace functions {

bool RequestQueue::Add(Client client) {
  if (waiting_.size() >= waiting_max_) return false;
  waiting_.push_back(client);
  return true;
}

void RequestQueue::Remove(Client client) {
  if (is_second_ && state_ != EngineState::kBusy && !waiting_.empty() && waiting_.front() == client)
    is_second_ = false;
  std::erase(waiting_, client);
}

RequestQueue::Client RequestQueue::OnAnswer() {
  assert(state_ == EngineState::kBusy);
  state_ = EngineState::kIdle;
  is_second_ = false;
  return current_;
}

std::optional<RequestQueue::Client> RequestQueue::OnLost() {
  const EngineState before = std::exchange(state_, EngineState::kNone);
  if (before == EngineState::kStarting && !waiting_.empty()) {
    // What an engine that does not start would have done first.
    is_second_ = false;
    const Client client = waiting_.front();
    waiting_.pop_front();
    return client;
  }
  if (before != EngineState::kBusy) return std::nullopt;
  if (is_second_) {
    is_second_ = false;
    return current_;
  }
  is_second_ = true;
  waiting_.push_front(current_);
  return std::nullopt;
}

std::optional<RequestQueue::Client> RequestQueue::TakeNext() {
  if (state_ != EngineState::kIdle || waiting_.empty()) return std::nullopt;
  state_ = EngineState::kBusy;
  current_ = waiting_.front();
  waiting_.pop_front();
  return current_;
}

}  // namespace functions

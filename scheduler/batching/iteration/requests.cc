#include "scheduler/batching/iteration/requests.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace scheduler::batching::iteration {
namespace {

int64_t WorkOf(const Sequence& sequence) {
  const int64_t answer = sequence.tokens_max - sequence.size();
  return sequence.size() + answer * sequence.copies;
}

}  // namespace

int64_t RankOf(Order order, const Arrived& about, int64_t now_us, int64_t aging_us) {
  if (order == Order::kFcfs) return 0;  // ids ascend
  if (order == Order::kPriority) return now_us + static_cast<int64_t>(about.priority) * aging_us;
  return now_us + (about.deadline_us > 0 ? about.deadline_us : aging_us);
}

void Requests::Index(Sequence* sequence) {
  if (sequence->phase == Phase::kLeaving) return;
  if (sequence->phase == Phase::kWaiting) {
    waiting_.insert(sequence);
    waiting_tokens_ += WorkOf(*sequence);
  } else {
    running_.insert(sequence);
    running_answers_ += sequence->copies;
  }
  if (sequence->due_us != kNever) by_due_.insert(sequence);
  if (sequence->deaths >= kSuspectDeaths) suspects_.insert(sequence);
}

void Requests::Unindex(Sequence* sequence) {
  if (sequence->phase == Phase::kLeaving) return;
  if (sequence->phase == Phase::kWaiting) {
    waiting_.erase(sequence);
    waiting_tokens_ -= WorkOf(*sequence);
  } else {
    running_.erase(sequence);
    running_answers_ -= sequence->copies;
  }
  by_due_.erase(sequence);
  suspects_.erase(sequence);
}

Sequence* Requests::Add(std::unique_ptr<Sequence> sequence) {
  Sequence* const added = sequence.get();
  by_request_[added->request()].push_back(std::move(sequence));
  Index(added);
  return added;
}

void Requests::Move(Sequence* sequence, Phase phase) {
  assert(Legal(sequence->phase, phase));
  Unindex(sequence);
  sequence->phase = phase;
  Index(sequence);
}

void Requests::Erase(Sequence* sequence) {
  assert(sequence->blocks.empty() && sequence->in_flight.steps == 0);
  Unindex(sequence);
  const ByRequest::iterator found = by_request_.find(sequence->request());
  std::erase_if(found->second, [sequence](const std::unique_ptr<Sequence>& each) {
    return each.get() == sequence;
  });
  if (found->second.empty()) by_request_.erase(found);
}

void Requests::CountDeath(Sequence* sequence) {
  ++sequence->deaths;
  if (sequence->phase != Phase::kLeaving && sequence->deaths >= kSuspectDeaths) {
    suspects_.insert(sequence);
  }
}

void Requests::Clip(Sequence* sequence, int32_t tokens_max) {
  assert(tokens_max > sequence->size() && tokens_max <= sequence->tokens_max);
  Unindex(sequence);
  sequence->tokens_max = tokens_max;
  Index(sequence);
}

void Requests::Divide(Sequence* sequence) {
  Unindex(sequence);
  sequence->copies = 1;
  Index(sequence);
}

Sequence* Requests::Find(RequestId request, int32_t copy) const {
  for (const std::unique_ptr<Sequence>& each : by_request_.at(request)) {
    if (each->key.copy == copy) return each.get();
  }
  assert(false);
  return nullptr;
}

std::vector<Sequence*> Requests::Of(RequestId request) const {
  std::vector<Sequence*> all;
  const ByRequest::const_iterator found = by_request_.find(request);
  if (found == by_request_.end()) return all;
  for (const std::unique_ptr<Sequence>& each : found->second) all.push_back(each.get());
  std::sort(all.begin(), all.end(), ByKey());
  return all;
}

std::vector<Sequence*> Requests::All() const {
  std::vector<Sequence*> all;
  for (const auto& [request, sequences] : by_request_) {
    for (const std::unique_ptr<Sequence>& each : sequences) all.push_back(each.get());
  }
  std::sort(all.begin(), all.end(), ByKey());
  return all;
}

Sequence* Requests::NextToBegin() const {
  if (Sequence* const suspect = FirstSuspect()) return running_.empty() ? suspect : nullptr;
  return waiting_.empty() ? nullptr : *waiting_.begin();
}

}  // namespace scheduler::batching::iteration

// Mode budget by its rules, written down a second time as plainly as they can be said: lists that
// are searched from one end to the other, and nothing of the code under test. One engine that is
// never lost, one answer to a request. Thread safety: one thread.
//
// 1. Requests that were cancelled, or whose deadline has passed, go. Blocks of a step in flight
//    stay until the step is done.
// 2. Requests that run have their part in the next step by key. Those that generate come first,
//    with a token each; then chunks of prompts share what is left of the step's tokens. A request
//    that generates needs a block for the token. The request takes a free block, else the cached
//    block that has been unreferenced for longest. Where all blocks are in use, the last key is
//    preempted: that request waits under its old key, and its full blocks stay cached. Where N
//    steps may be in flight, one has an Nth of those that run at most, rounded up, before chunks.
// 3. When nothing was preempted, requests that wait begin by key, and none before an earlier one.
//    Known blocks of the prompt are taken from the cache, the last token is computed in any case,
//    and blocks for the whole rest, and the watermark when others run, have to be available.
// 4. A request that can never fit the context or the pool is refused, and so is one for which the
//    queue has no room, in requests or in tokens. An answer ends where context or pool end.
// 5. Under `ahead` a request that the step in flight has may be in the next step, too: with a
//    further chunk of its prompt, or with the token that is being drawn. The latter not where that
//    token is the last of the answer, or the way of drawing needs it. Such a request takes an
//    available block and preempts none; the next step has all that generate, and no Nth. When one
//    request finds no block, no later one goes ahead in that step.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/batching/iteration/state.h"

namespace scheduler::batching::iteration {

class BudgetRules {
 public:
  // What is done, in order, in words.
  using Actions = std::vector<std::string>;

  BudgetRules(const Options& options, int32_t blocks) : options_(options) {
    pool_tokens_ = blocks * 16;
    cached_.assign(static_cast<size_t>(blocks), false);
    references_.assign(static_cast<size_t>(blocks), 0);
    for (int32_t block = 0; block < blocks; ++block) unused_.push_back(block);
  }

  Actions Arrive(const Arrived& about, int64_t now_us) {
    Actions actions;
    const int32_t size = static_cast<int32_t>(about.tokens.size());
    const int32_t most = std::min({size + about.new_max, options_.context_max, pool_tokens_});
    int64_t queued = 0, queued_tokens = 0;
    for (const Request& each : requests_) {
      if (each.where != kWaits) continue;
      ++queued;
      queued_tokens += each.tokens_max;
    }
    if (most <= size) {
      actions.push_back(absl::StrCat("refuse ", about.request, ": too long"));
    } else if (queued >= options_.queue_requests_max ||
               queued_tokens + most > options_.queue_tokens_max) {
      actions.push_back(absl::StrCat("refuse ", about.request, ": queue full"));
    } else {
      Request request;
      request.id = about.request;
      const int64_t patience_us = static_cast<int64_t>(about.priority) * options_.aging_us;
      request.rank = options_.order == Order::kPriority ? now_us + patience_us : 0;
      request.tokens = about.tokens;
      request.tokens_max = most;
      request.needs_drawn = about.needs_drawn;
      request.due_us = about.deadline_us > 0 ? now_us + about.deadline_us : kNever;
      requests_.push_back(request);
      std::stable_sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
      });
    }
    return Then(actions, now_us);
  }

  Actions Cancel(RequestId id, int64_t now_us) {
    Actions actions;
    for (Request& each : requests_) {
      if (each.id == id && each.where != kLeaves) End(&each, "cancelled", &actions);
    }
    return Then(actions, now_us);
  }

  // The oldest step is done; `sampled` are its tokens.
  Actions Finish(const std::vector<Sampled>& sampled, int64_t now_us) {
    Actions actions;
    size_t at = 0;
    const std::vector<Part> parts = flights_.front();
    flights_.erase(flights_.begin());
    for (const Part& part : parts) {
      Request* const request = Find(part.id);
      --request->in_flight;
      request->drawing -= part.samples ? 1 : 0;
      if (request->where == kLeaves) {
        at += part.samples ? 1 : 0;
        if (request->in_flight > 0) continue;
        GiveBack(request);
        request->where = kGone;
        continue;
      }
      request->computed += part.count;
      Remember(request);
      if (!part.samples) continue;
      const Sampled& token = sampled[at++];
      request->tokens.push_back(token.token);
      const bool is_full = Size(*request) == request->tokens_max;
      if (token.stops || is_full) End(request, token.stops ? "stopped" : "length", &actions);
    }
    return Then(actions, now_us);
  }

 private:
  enum Where { kWaits, kRuns, kLeaves, kGone };
  struct Request {
    RequestId id = 0;
    int64_t rank = 0;
    std::vector<Token> tokens;
    int32_t tokens_max = 0;
    int64_t due_us = kNever;
    Where where = kWaits;
    bool needs_drawn = false;
    int32_t in_flight = 0;  // steps
    int32_t drawing = 0;    // steps in flight that draw a token of it
    int32_t computed = 0;
    int32_t planned = 0;  // computed when these steps are done
    int32_t told = 0;     // blocks that the engine knows
    std::vector<int32_t> blocks;
    uint64_t known = 0;  // the entry of its last block that is known
    int32_t known_blocks = 0;
  };
  struct Part {
    RequestId id = 0;
    int32_t count = 0;
    bool samples = false;
  };
  // A full block is known by its tokens after those of another entry.
  struct Entry {
    uint64_t number = 0;
    uint64_t before = 0;
    std::vector<Token> tokens;
    int32_t block = 0;
  };

  static int32_t Size(const Request& request) {
    return static_cast<int32_t>(request.tokens.size());
  }
  // Tokens before the next one, and those that no step has.
  static int32_t Open(const Request& request) {
    return Size(request) + request.drawing - request.planned;
  }
  bool MayGo(const Request& request) const {
    if (request.where != kRuns) return false;
    if (request.in_flight == 0) return true;
    if (!options_.ahead || request.in_flight == 2) return false;
    const bool draws_last = Size(request) + request.drawing >= request.tokens_max;
    return request.drawing == 0 || (!request.needs_drawn && !draws_last);
  }
  Request* Find(RequestId id) {
    for (Request& each : requests_) {
      if (each.id == id) return &each;
    }
    return nullptr;
  }

  // --- blocks -----------------------------------------------------------------------------------

  int32_t Available() const { return static_cast<int32_t>(unused_.size() + oldest_.size()); }
  int32_t Take() {
    int32_t block = 0;
    if (!unused_.empty()) {
      block = unused_.back();
      unused_.pop_back();
    } else {
      block = oldest_.front();
      oldest_.erase(oldest_.begin());
      std::erase_if(entries_, [block](const Entry& entry) { return entry.block == block; });
      cached_[static_cast<size_t>(block)] = false;
    }
    references_[static_cast<size_t>(block)] = 1;
    return block;
  }
  void GiveBack(Request* request) {
    for (; !request->blocks.empty(); request->blocks.pop_back()) {
      const int32_t block = request->blocks.back();
      if (--references_[static_cast<size_t>(block)] > 0) continue;
      (cached_[static_cast<size_t>(block)] ? oldest_ : unused_).push_back(block);
    }
    request->computed = request->planned = request->told = request->known_blocks = 0;
    request->known = 0;
  }
  const Entry* Known(uint64_t before, const std::vector<Token>& tokens) const {
    for (const Entry& entry : entries_) {
      if (entry.before == before && entry.tokens == tokens) return &entry;
    }
    return nullptr;
  }
  static std::vector<Token> Block(const Request& request, int32_t at) {
    return {request.tokens.begin() + at * 16, request.tokens.begin() + at * 16 + 16};
  }
  void Remember(Request* request) {
    if (!options_.prefix_cache) return;
    for (; (request->known_blocks + 1) * 16 <= request->computed; ++request->known_blocks) {
      const std::vector<Token> tokens = Block(*request, request->known_blocks);
      if (Known(request->known, tokens) == nullptr) {
        const int32_t block = request->blocks[static_cast<size_t>(request->known_blocks)];
        entries_.push_back({++last_entry_, request->known, tokens, block});
        cached_[static_cast<size_t>(block)] = true;
      }
      request->known = Known(request->known, tokens)->number;
    }
  }

  // --- steps ------------------------------------------------------------------------------------

  void End(Request* request, const char* why, Actions* actions) {
    actions->push_back(absl::StrCat("end ", request->id, ": ", why));
    if (request->in_flight == 0) GiveBack(request);
    request->where = request->in_flight > 0 ? kLeaves : kGone;
  }

  Actions Then(Actions actions, int64_t now_us) {
    std::vector<Request*> due;
    for (Request& each : requests_) {
      if (each.where <= kRuns && each.due_us <= now_us) due.push_back(&each);
    }
    std::stable_sort(due.begin(), due.end(),
                     [](const Request* a, const Request* b) { return a->due_us < b->due_us; });
    for (Request* const each : due) End(each, "expired", &actions);
    std::erase_if(requests_, [](const Request& each) { return each.where == kGone; });
    while (static_cast<int32_t>(flights_.size()) < options_.steps_in_flight_max) {
      if (!Plan(&actions)) break;
    }
    return actions;
  }

  void AddPart(Request* request, int32_t count, std::vector<Part>* parts, std::string* text) {
    const bool samples = count == Open(*request);
    const int32_t blocks = static_cast<int32_t>(request->blocks.size());
    absl::StrAppend(text, " ", request->id, "[", request->planned, "+", count, samples ? "!" : "",
                    " blocks ", request->told, "+", blocks - request->told, "]");
    request->told = blocks;
    request->planned += count;
    request->drawing += samples ? 1 : 0;
    ++request->in_flight;
    parts->push_back({request->id, count, samples});
  }

  // False: the request has no part in the step.
  bool FindBlock(Request* request, bool* preempted, Actions* actions) {
    const bool has_one = request->planned < static_cast<int32_t>(request->blocks.size()) * 16;
    if (has_one) return true;
    if (request->in_flight > 0 && Available() == 0) return false;
    while (Available() == 0) {
      Request* last = nullptr;
      for (Request& each : requests_) {
        if (each.where == kRuns && each.in_flight == 0) last = &each;
      }
      // While another step is in flight its blocks may come back.
      if (last == request && !flights_.empty()) return false;
      actions->push_back(absl::StrCat("preempt ", last->id));
      GiveBack(last);
      last->where = kWaits;
      *preempted = true;
      if (last == request) return false;
    }
    request->blocks.push_back(Take());
    return true;
  }

  bool MayBegin(Request* request) {
    int32_t running = 0;
    for (const Request& each : requests_) running += each.where == kRuns ? 1 : 0;
    if (running == options_.answers_max) return false;
    std::vector<int32_t> found;
    uint64_t before = 0;
    for (int32_t at = 0; options_.prefix_cache && (at + 1) * 16 <= Size(*request) - 1; ++at) {
      const Entry* const entry = Known(before, Block(*request, at));
      if (entry == nullptr) break;
      found.push_back(entry->block);
      before = entry->number;
    }
    int32_t needed = (Size(*request) + 15) / 16 + (running == 0 ? 0 : options_.watermark_blocks);
    for (const int32_t block : found) needed -= references_[static_cast<size_t>(block)] > 0 ? 1 : 0;
    if (needed > Available()) return false;
    for (const int32_t block : found) {
      ++references_[static_cast<size_t>(block)];
      std::erase(oldest_, block);
    }
    request->blocks = found;
    request->known = before;
    request->known_blocks = static_cast<int32_t>(found.size());
    request->computed = request->planned = request->known_blocks * 16;
    while (static_cast<int32_t>(request->blocks.size()) * 16 < Size(*request))
      request->blocks.push_back(Take());
    request->where = kRuns;
    return true;
  }

  // Those that the step gives their next token, unless they are preempted for each other.
  std::vector<Request*> ShareOfStep() {
    int32_t running = 0;
    for (const Request& each : requests_) running += each.where == kRuns ? 1 : 0;
    std::vector<Request*> share;
    for (Request& each : requests_) {
      // As many as are running, in as many equal parts as there may be steps.
      const int32_t parts = options_.ahead ? 1 : options_.steps_in_flight_max;
      const bool room = static_cast<int32_t>(share.size()) * parts < running;
      if (MayGo(each) && Open(each) == 1 && room) share.push_back(&each);
    }
    return share;
  }

  bool Plan(Actions* actions) {
    std::vector<Part> parts;
    std::string text;
    int32_t left = options_.tokens_max;
    bool preempted = false;
    bool lacking = false;
    for (Request* const each : ShareOfStep()) {
      if (each->where != kRuns || (lacking && each->in_flight > 0)) continue;
      lacking = !FindBlock(each, &preempted, actions) || lacking;
      if (each->where != kRuns || each->planned == static_cast<int32_t>(each->blocks.size()) * 16)
        continue;
      AddPart(each, 1, &parts, &text);
      --left;
    }
    for (Request& each : requests_) {
      if (left == 0 || !MayGo(each) || Open(each) == 1) continue;
      const int32_t count = std::min(left, Open(each));
      AddPart(&each, count, &parts, &text);
      left -= count;
    }
    for (Request& each : requests_) {
      if (each.where != kWaits) continue;
      if (left == 0 || preempted || !MayBegin(&each)) break;
      const int32_t count = std::min(left, Open(each));
      AddPart(&each, count, &parts, &text);
      left -= count;
    }
    if (parts.empty()) return false;
    flights_.push_back(parts);
    actions->push_back("step" + text);
    return true;
  }

  const Options options_;
  int32_t pool_tokens_ = 0;
  std::vector<Request> requests_;  // by key
  std::vector<std::vector<Part>> flights_;
  std::vector<int32_t> unused_;
  std::vector<int32_t> oldest_;  // cached and unreferenced, the longest first
  std::vector<bool> cached_;
  std::vector<int32_t> references_;
  std::vector<Entry> entries_;
  uint64_t last_entry_ = 0;
};

}  // namespace scheduler::batching::iteration

// An engine that keeps tokens where a real one keeps keys and values, and draws the next token by a
// rule of all tokens before it. Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "serve/llm/generation/generation.h"

namespace serve::llm {

inline constexpr int32_t kVocabulary = 97;

inline int32_t RuleOf(const std::vector<int32_t>& tokens, uint64_t seed, int32_t copy) {
  uint64_t hash = seed * 31 + static_cast<uint64_t>(copy);
  for (const int32_t token : tokens) hash = (hash ^ static_cast<uint64_t>(token)) * 0x100000001b3;
  return static_cast<int32_t>((hash >> 20) % kVocabulary);
}

class FakeEngine final : public Generation::Effects {
 public:
  explicit FakeEngine(const GenerationOptions& options) : options_(options) {}

  void Restart(int32_t blocks) {
    pool_.assign(static_cast<size_t>(blocks), {});
    for (std::array<int32_t, 16>& block : pool_) block.fill(-1);
    answers.clear();
  }

  void SendPlan(const Plan& plan) override {
    const BatchLimits limits = {options_.batcher.tokens_max,
                                options_.batcher.answers_max,
                                options_.batcher.context_max,
                                static_cast<int32_t>(pool_.size()),
                                kVocabulary,
                                static_cast<int32_t>(drawn_.size())};
    const absl::Status status = PackUntrusted(plan.requests, plan.copies, limits).status();
    ASSERT_TRUE(status.ok()) << status.message();
    for (const auto& [from, to] : plan.copies)
      pool_[static_cast<size_t>(to)] = pool_[static_cast<size_t>(from)];
    Answer answer{plan.number, {}, 1};
    for (const BatchRequest& request : plan.requests) Compute(request, &answer.result);
    drawn_ = answer.result.tokens;
    answers.push_back(std::move(answer));
  }
  void SetTimer(int64_t at_us) override { timer_us = at_us; }

  std::deque<Answer> answers;
  int64_t timer_us = scheduler::batching::kNever;

 private:
  int32_t& At(const BatchRequest& request, int32_t position) {
    const size_t block = static_cast<size_t>(request.blocks[static_cast<size_t>(position / 16)]);
    return pool_[block][static_cast<size_t>(position % 16)];
  }
  void Compute(const BatchRequest& request, StepResult* result) {
    int32_t at = request.length - static_cast<int32_t>(request.tokens.size());
    for (const int32_t token : request.tokens)
      At(request, at++) =
          request.follows < 0 ? token : drawn_[static_cast<size_t>(request.follows)];
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < request.length; ++i) tokens.push_back(At(request, i));
    for (const Sampling& sampling : request.samples) {
      EXPECT_EQ(sampling.how.position, request.length);
      result->tokens.push_back(RuleOf(tokens, sampling.how.seed, sampling.how.copy));
    }
  }

  const GenerationOptions& options_;
  std::vector<std::array<int32_t, 16>> pool_;
  std::vector<int32_t> drawn_;  // by the last plan
};

}  // namespace serve::llm

// Bodies of requests, with prompts and answers as long as a plan says. Pure. Thread safety:
// stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sim/random.h"
#include "cli/sim/serving/requests_trace.h"

namespace load {

// Words of English, for a server to make tokens of.
const std::string& SomeWords();

struct BodyPlan {
  std::string model;
  bool chat = false;         // messages in place of a prompt
  bool ignore_eos = true;    // answers get as long as the plan says
  std::vector<int64_t> ids;  // tokens that prompts are drawn from; empty: words, one a token
};

// Tokens are drawn alike at random, so prompts of different requests share no beginning, unless the
// request has hash_ids: an id stands for the same tokens each time.
std::string BodyOf(const sim::serving::TracedRequest& request, const BodyPlan& plan,
                   sim::Random* random);

}  // namespace load

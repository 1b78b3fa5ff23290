// Measures how long an engine's steps take, by their size, from a client's place: HTTP is included,
// and the server must have nothing else to do. `laneway sim serving --costs` reads the table
// (cli/sim/serving/costs.h). Pure: points to measure, and times from answers. Thread safety:
// stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/load/answer_stream.h"

namespace load {

// One measurement: so many equal requests at a time.
struct ProfilePoint {
  enum Kind {
    kPrompt,  // one request, for one token: the time to it
    kStep,    // `size` requests: the time between tokens while all of them generate
  };
  Kind kind = kPrompt;
  int64_t size = 1;  // tokens of the prompt, or requests
  int64_t requests() const { return kind == kPrompt ? 1 : size; }
  int64_t prompt_tokens() const;
  int64_t answer_tokens() const;
};

inline constexpr int kPromptRounds = 3;  // of which the median counts

// Powers of two: prompts from 16 tokens to what the context has room for, at most 4096; requests
// from 1 to `at_once`, at most 64. Context 0: not known, taken for 2048.
std::vector<ProfilePoint> PointsOf(int64_t context, int64_t at_once);

// The milliseconds of a point, from the answers of its rounds. Negative: the answers are not whole,
// or never ran all at the same time.
double MsOf(const ProfilePoint& point, const std::vector<std::vector<Answer>>& rounds);

struct ProfileRow {
  ProfilePoint point;
  double ms = 0;
};
std::string TableText(const std::string& model, const std::vector<ProfileRow>& rows);

}  // namespace load

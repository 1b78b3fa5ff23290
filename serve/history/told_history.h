// A front's answer to {"command": "trace", "model": N}: the records of one of its models as JSON.
// The front writes it, `laneway trace` reads it.
//
//     {"pid": 7, "job": 3, "url": "http://127.0.0.1:8000/v1", "models": 2,
//      "model": "small", "now_us": 1234,
//      "steps": [[number, begin_us, end_us, computed_us, prompt_tokens, decode_tokens, answers,
//                 blocks, preemptions, lost], ...],
//      "loads": [[at_us, running, waiting, blocks], ...],
//      "requests": [{"number", "id", "priority", "answers", "prompt_tokens", "cached_tokens",
//                    "generated_tokens", "arrived_us", "begun_us", "first_token_us", "ended_us",
//                    "outcome", "preemptions", "recomputations",
//                    "pauses": [[begin_us, end_us, engine_lost, answer], ...]}, ...],
//      "refused": [the same], "engines": [{"started_us", "ready_us", "lost_us", "blocks", "why"}]}
//
// Steps and loads are many, so that they are lists of numbers. Pure. Thread safety: functions
// without state.
#pragma once

#include <cstdint>
#include <string>

#include "serve/history/records.h"

namespace serve::history {

struct ToldHistory {
  int64_t pid = 0;   // of the front
  uint64_t job = 0;  // of the front; 0: it runs without Laneway
  std::string url;
  uint64_t models = 0;  // of the front
  std::string model;
  int64_t now_us = 0;  // when the front answered
  Records records;

  bool operator==(const ToldHistory&) const = default;
};

// Texts of other encodings than UTF-8 lose what is none.
std::string Encode(const ToldHistory& told);

// False: no such answer. Then in `told`: no more records than a front keeps, and no time beyond
// `now_us`. What lasts has an end that is not before its begin, or has none. Numbers are not
// negative. Texts may be any.
bool DecodeUntrusted(const std::string& answer, ToldHistory* told);

// "stopped", "refused: the queue is full", ...
const char* NameOf(Outcome outcome);

}  // namespace serve::history

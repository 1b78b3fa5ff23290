// An answer as it comes: the events of a stream of OpenAI's API, each with the time of its arrival.
//
// A server sends `data: {...}` for each token, a last object with `usage`, and `data: [DONE]`.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace load {

// A request's answer, or why there is none. All times are of the monotonic clock, in microseconds.
struct Answer {
  int status = 0;       // of HTTP; 0: there was no answer
  std::string failure;  // one sentence; empty: the answer is whole
  int64_t due_us = 0;   // when the plan has it
  int64_t sent_us = 0;
  int64_t end_us = 0;
  std::vector<int64_t> tokens_us;  // when each chunk with a piece of text came
  int64_t prompt_tokens = 0;       // as the server counts; 0: it does not say
  int64_t answer_tokens = 0;

  bool ok() const { return failure.empty(); }
  int64_t FirstUs() const { return tokens_us.empty() ? end_us : tokens_us.front(); }
};

class AnswerStream {
 public:
  explicit AnswerStream(Answer* answer) : answer_(*answer) {}

  // False: the server sent something else than such a stream, and answer.failure says what.
  bool Feed(std::string_view bytes_untrusted, int64_t now_us);
  // At the end of the body: notes a failure when the stream ended early.
  void End();

 private:
  bool OnLine(std::string_view line, int64_t now_us);

  Answer& answer_;
  std::string line_;  // that has begun
  bool done_ = false;
};

}  // namespace load

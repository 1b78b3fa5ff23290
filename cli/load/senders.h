// Threads that ask: each request when it is due, at most so many at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/load/client.h"

namespace load {

struct Sending {
  int64_t due_us = 0;  // from the first one's
  std::string body;
};
struct SendingPlan {
  Server server;
  std::string route;              // after /v1/
  std::vector<Sending> requests;  // by due_us
  size_t at_once = 1;             // at least 1
};
// How far it is.
struct Progress {
  size_t all = 0;
  size_t sent = 0;
  size_t ended = 0;
  size_t failed = 0;
};

// Answers in the order of the requests. A request that is due while `at_once` are asked waits for
// one of them. Calls on_progress about once a second, on the caller's thread. After `*stop` no more
// requests are sent, and answers that have not ended fail as interrupted.
std::vector<Answer> SendAll(const SendingPlan& plan, const std::atomic<bool>& stop,
                            const std::function<void(const Progress&)>& on_progress);

}  // namespace load

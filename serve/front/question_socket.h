// A Unix socket at which the user's own programs ask the front a question: one line there, one
// answer back, and the connection ends. `laneway top`, `status`, `why` and `trace` ask so.
//
// The file has mode 0600, and the peer must be of the same user. At most kConnectionsMax at a time;
// a connection that takes longer than kConnectionUs is closed. Thread safety: the event loop's
// thread. Ownership: the loop outlives the socket; the file goes with the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "serve/loop/descriptor.h"
#include "serve/loop/event_loop.h"

namespace serve::front {

class QuestionSocket {
 public:
  static constexpr size_t kConnectionsMax = 16;
  static constexpr size_t kQuestionBytesMax = 4096;
  static constexpr int64_t kConnectionUs = 5'000'000;

  using Answer = std::function<std::string(const std::string& question)>;

  // Replaces a file that a process has left behind. Fails with a sentence.
  static absl::StatusOr<std::unique_ptr<QuestionSocket>> Open(EventLoop* loop,
                                                              const std::string& path,
                                                              Answer answer);
  ~QuestionSocket();
  QuestionSocket(const QuestionSocket&) = delete;

 private:
  struct Connection {
    Descriptor socket;
    std::string question;  // so far
    std::string unsent;
    EventLoop::TimerId timer = 0;
  };

  QuestionSocket(EventLoop* loop, std::string path, Descriptor listener, Answer answer);
  void Accept();
  void Read(int number);
  void Send(int number);
  void Close(int number);

  EventLoop& loop_;
  const std::string path_;
  const Descriptor listener_;
  const Answer answer_;
  std::map<int, Connection> connections_;  // by descriptor
};

}  // namespace serve::front

// One request and its answer, between the handler and the library's connection.
// Thread safety: the server's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "serve/http/responder.h"

struct MHD_Connection;
struct MHD_Response;

namespace serve::http {

class Exchange : public Responder {
 public:
  Exchange(MHD_Connection* connection, int socket, size_t unread_bytes_max)
      : connection_(connection), socket_(socket), unread_bytes_max_(unread_bytes_max) {}

  void Reply(Answer answer) override;
  void BeginStream() override;
  void Send(std::string_view bytes) override;
  void End() override;
  void OnGone(std::function<void()> gone) override { gone_ = std::move(gone); }

  Request& request() { return request_; }
  bool answered() const { return stage_ != Stage::kOpen; }
  bool replied() const { return stage_ == Stage::kReplied; }
  bool lost() const { return lost_; }

  // For the server. Suspends until there is an answer.
  void Suspend();
  // Gives the answer to the library; false: the connection is to be closed.
  bool QueueAnswer();
  // The client has left, or takes nothing: the connection will be closed.
  void Lose();
  // The library is done with the request. The connection is used no more.
  void Detach();
  // Bytes of the stream for the library: a count, or its codes for later, the end and a failure.
  ssize_t Read(char* room, size_t room_bytes);

 private:
  enum class Stage { kOpen, kReplied, kStreams, kEnded };

  void Resume();
  void TellGone();
  bool Queue(MHD_Response* response, const Answer& answer);

  MHD_Connection* connection_;
  const int socket_;
  const size_t unread_bytes_max_;
  Request request_;
  Stage stage_ = Stage::kOpen;
  Answer answer_;
  std::string unread_;
  size_t taken_ = 0;  // of `unread_`
  bool suspended_ = false;
  bool lost_ = false;
  std::function<void()> gone_;
};

}  // namespace serve::http

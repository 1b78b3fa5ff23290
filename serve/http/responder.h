// The border between the server and what answers requests: a Handler gets a whole request, and
// answers it at once or later through a Responder.
//
// Thread safety: the thread that runs the server. Ownership: server and handler share a responder,
// and either may drop it first.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "serve/http/message.h"

namespace serve::http {

// One request takes one Reply, or BeginStream and, in the end, End. All calls are ignored once the
// peer has gone.
class Responder {
 public:
  virtual ~Responder() = default;

  virtual void Reply(Answer answer) = 0;

  // Status 200 and server-sent events. REQUIRES: no answer has begun, as for Reply.
  virtual void BeginStream() = 0;
  // The bytes are buffered until the client takes them. When a client leaves more bytes than the
  // server's bound, the server closes the connection, and the request ends as at a close by the
  // client. REQUIRES: the stream has begun and has not ended.
  virtual void Send(std::string_view bytes) = 0;
  virtual void End() = 0;

  // Calls `gone` when the client closes its connection, or its side of it, before the whole answer
  // is there. The call comes from Server::Run, never from within a call of this class.
  virtual void OnGone(std::function<void()> gone) = 0;
};

class Handler {
 public:
  virtual ~Handler() = default;
  virtual void OnRequest(Request request, std::shared_ptr<Responder> responder) = 0;
  // The answer to a request that the server itself refuses: 403, 413.
  virtual Answer Refusal(int status, std::string_view sentence) = 0;
};

}  // namespace serve::http

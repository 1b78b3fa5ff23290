// An HTTP/1.1 server without a thread: the caller's loop watches one descriptor and calls Run.
//
// GNU libmicrohttpd parses and keeps connections. A connection without an answer is
// suspended and costs nothing. The server watches the socket for the end of the client's side, so
// that a client ends a waiting request by leaving. All is bounded: connections,
// headers, bodies, the time for a whole request, and what a client leaves unread.
// Thread safety: one thread. Linux (epoll).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "serve/http/exchange.h"
#include "serve/http/listener.h"
#include "serve/http/responder.h"

struct MHD_Daemon;

namespace serve::http {

struct ServerOptions {
  size_t connections_max = 2048;  // lowered to what the limit of descriptors allows
  size_t body_bytes_max = 4 << 20;
  size_t header_bytes_max = 32 << 10;
  size_t unread_bytes_max = 1 << 20;  // of one stream
  int64_t request_us = 60'000'000;    // from a connection's begin, or its last answer
  unsigned idle_s = 60;               // without a byte taken of an answer that is there
  bool only_this_machine = false;     // see listener.h: refuse pages of other sites
};

class Server {
 public:
  // `now_us` is a monotonic clock. REQUIRES: `handler` outlives the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Listener listener, ServerOptions options,
                                                       Handler* handler,
                                                       std::function<int64_t()> now_us);
  ~Server();
  Server(const Server&) = delete;

  // Readable when Run has something to do.
  int descriptor() const { return epoll_.get(); }
  // Does what can be done without waiting; to be called after a responder was used, too. Returns in
  // how many milliseconds to call it again though the descriptor is not readable; -1: not before
  // that.
  int Run();
  // Connections that are there go on.
  void StopListening();
  size_t connections() const { return connections_; }
  // Requests that wait for an answer, or for its end.
  size_t open_requests() const { return open_requests_; }

 private:
  friend struct LibraryCalls;  // the library's callbacks
  struct Connection;

  Server(Listener listener, ServerOptions options, Handler* handler, std::function<int64_t()> now);
  absl::Status StartLibrary();
  void Accept();
  void RefuseConnection(int socket);
  void ExpectRequest(Connection* connection);
  void CloseLate();
  void OnSocketEvents();
  int NextRunMs();
  void WatchPeer(Connection* connection, bool watch);
  bool Refuses(const Request& request) const;

  Listener listener_;
  ServerOptions options_;
  Handler* const handler_;
  const std::function<int64_t()> now_us_;
  Descriptor epoll_;
  MHD_Daemon* library_ = nullptr;
  std::set<std::pair<int64_t, Connection*>> deadlines_;  // of connections without a whole request
  std::set<Connection*> watched_;  // whose clients wait for an answer, or for its rest
  size_t connections_ = 0;
  size_t open_requests_ = 0;
  int64_t accept_again_us_ = 0;  // there were no descriptors left; 0: accepts
  uint64_t last_id_ = 0;
};

}  // namespace serve::http

// A page on 127.0.0.1 for scrapers of metrics: GET /metrics, and nothing else.
//
// GNU libmicrohttpd parses and keeps connections; its epoll descriptor is watched by our loop, so
// nothing here waits and no thread is made. Bounded: few connections, small requests, slow ones are
// dropped. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"

struct MHD_Daemon;

namespace control {

// True when a request's Host is localhost, 127.0.0.1 or [::1], with any port. A web page can let
// another name lead to this machine, and a browser would then let that page read the answer.
bool IsThisMachine(std::string_view host);

class MetricsServer {
 public:
  // `text` makes the page, once per request.
  MetricsServer(common::EventLoop* loop, std::function<std::string()> text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;

  // The error is a sentence. REQUIRES: called once.
  absl::Status Listen(uint16_t port);

  // For the library's callback.
  std::string Text() const { return text_(); }

 private:
  void Serve();

  common::EventLoop* const loop_;
  const std::function<std::string()> text_;
  MHD_Daemon* server_ = nullptr;
  int descriptor_ = -1;
  common::EventLoop::TimerId timer_ = 0;
  unsigned had_connections_ = 0;  // after the last run
};

}  // namespace control

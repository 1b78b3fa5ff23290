#include "daemon/control/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace control {
namespace {

constexpr unsigned kConnectionsMax = 16;
constexpr unsigned kConnectionSeconds = 10;
constexpr size_t kConnectionBytes = 16 << 10;

MHD_Result Reply(MHD_Connection* connection, unsigned status, std::string_view type,
                 std::string_view text) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, std::string(type).c_str());
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

// The library's interface: called for the head and for each part of a body, which must be taken.
MHD_Result OnRequest(void* server, MHD_Connection* connection, const char* url, const char* method,
                     const char*, const char*, size_t* body_bytes, void** state) {
  if (*state == nullptr) {
    *state = server;
    return MHD_YES;
  }
  if (*body_bytes != 0) {
    *body_bytes = 0;
    return MHD_YES;
  }
  if (std::string_view(method) != "GET" && std::string_view(method) != "HEAD") {
    return Reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "only GET\n");
  }
  if (std::string_view(url) != "/metrics") {
    return Reply(connection, MHD_HTTP_NOT_FOUND, "text/plain", "only /metrics\n");
  }
  return Reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
               static_cast<const MetricsServer*>(server)->Text());
}

}  // namespace

MetricsServer::MetricsServer(common::EventLoop* loop, std::function<std::string()> text)
    : loop_(loop), text_(std::move(text)) {}

MetricsServer::~MetricsServer() {
  if (server_ == nullptr) return;
  loop_->Unwatch(descriptor_);
  if (timer_ != 0) loop_->Cancel(timer_);
  MHD_stop_daemon(server_);
}

absl::Status MetricsServer::Listen(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  errno = 0;
  server_ = MHD_start_daemon(MHD_USE_EPOLL, port, nullptr, nullptr, &OnRequest, this,
                             MHD_OPTION_SOCK_ADDR, reinterpret_cast<sockaddr*>(&address),
                             MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
                             MHD_OPTION_CONNECTION_TIMEOUT, kConnectionSeconds,
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
  if (server_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen at 127.0.0.1:", port, ": ",
                     errno != 0 ? std::strerror(errno) : "libmicrohttpd refuses",
                     "; give --metrics another port"));
  }
  descriptor_ = MHD_get_daemon_info(server_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  loop_->Watch(descriptor_, [this] { Serve(); });
  return absl::OkStatus();
}

// Also when a connection's time is over, which no descriptor tells.
void MetricsServer::Serve() {
  MHD_run(server_);
  if (timer_ != 0) loop_->Cancel(std::exchange(timer_, 0));
  MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
  if (MHD_get_timeout(server_, &timeout_ms) != MHD_YES) return;
  timer_ = loop_->After(static_cast<int64_t>(timeout_ms) * 1000, [this] {
    timer_ = 0;
    Serve();
  });
}

}  // namespace control

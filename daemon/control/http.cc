#include "daemon/control/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace control {
namespace {

constexpr unsigned kConnectionsMax = 64;
constexpr unsigned kConnectionSeconds = 2;
constexpr int64_t kLookUs = 250'000;  // while there are connections
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
  const char* const host =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  if (host != nullptr && !IsThisMachine(host)) {
    return Reply(connection, MHD_HTTP_FORBIDDEN, "text/plain",
                 "only for localhost, 127.0.0.1 and [::1]\n");
  }
  if (std::string_view(method) != "GET") {
    return Reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "only GET\n");
  }
  if (std::string_view(url) != "/metrics") {
    return Reply(connection, MHD_HTTP_NOT_FOUND, "text/plain", "only /metrics\n");
  }
  return Reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
               static_cast<const MetricsServer*>(server)->Text());
}

}  // namespace

bool IsThisMachine(std::string_view host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (has_port) host = host.substr(0, colon);
  return host == "127.0.0.1" || host == "[::1]" ||
         absl::EqualsIgnoreCase({host.data(), host.size()}, "localhost");
}

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

// At its limit of connections the library does not listen, and begins again only in a run after one
// has ended: so it runs once more after each, and now and then while there are any. A connection
// whose time is over is told by no descriptor either.
void MetricsServer::Serve() {
  if (timer_ != 0) loop_->Cancel(std::exchange(timer_, 0));
  MHD_run(server_);
  MHD_run(server_);
  const unsigned connections =
      MHD_get_daemon_info(server_, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
  MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
  const bool timed = MHD_get_timeout(server_, &timeout_ms) == MHD_YES;
  if (!timed && connections == 0 && had_connections_ == 0) return;
  had_connections_ = connections;
  const int64_t delay_us = timed ? static_cast<int64_t>(timeout_ms) * 1000 : kLookUs;
  timer_ = loop_->After(std::min(delay_us, kLookUs), [this] {
    timer_ = 0;
    Serve();
  });
}

}  // namespace control

#include "serve/http/server.h"

#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace serve::http {

struct Server::Connection {
  Server* server = nullptr;
  int socket = -1;
  int64_t deadline_us = 0;  // 0: a whole request is there
  bool is_watched = false;
  std::shared_ptr<Exchange> exchange;
};

namespace {

constexpr size_t kOtherDescriptors = 64;  // besides those of connections
constexpr int64_t kNoDescriptorsUs = 100'000;
constexpr int kTurnsMax = 16;  // of the library in one run, so that others get their turn
constexpr size_t kIdBytesMax = 128;

size_t ConnectionsPossible(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, wanted * 2));
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  const size_t room = limit.rlim_cur > 2 * kOtherDescriptors ? limit.rlim_cur - kOtherDescriptors
                                                             : kOtherDescriptors;
  return std::min(wanted, room);
}

MHD_Result AddHeader(void* headers, MHD_ValueKind, const char* name, const char* value) {
  auto* const map = static_cast<std::map<std::string, std::string, std::less<>>*>(headers);
  map->emplace(absl::AsciiStrToLower(name), value == nullptr ? "" : value);
  return MHD_YES;
}

// An id that stands in headers and logs: visible characters of ASCII alone.
bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= kIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string_view HeaderOf(const Request& request, std::string_view name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

bool IsTooLong(std::string_view content_length, size_t bytes_max) {
  const size_t digits = content_length.find_first_not_of('0');
  if (digits == std::string_view::npos) return false;
  content_length.remove_prefix(digits);
  return content_length.size() > 18 ||
         std::strtoull(std::string(content_length).c_str(), nullptr, 10) > bytes_max;
}

}  // namespace

// The library's callbacks, which are C.
struct LibraryCalls {
  static void OnConnection(void* server_pointer, MHD_Connection* connection, void** state,
                           MHD_ConnectionNotificationCode code) {
    auto* const server = static_cast<Server*>(server_pointer);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      auto* const made = new Server::Connection;
      made->server = server;
      made->socket =
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
      *state = made;
      ++server->connections_;
      server->ExpectRequest(made);
      return;
    }
    auto* const ended = static_cast<Server::Connection*>(*state);
    server->deadlines_.erase({ended->deadline_us, ended});
    server->WatchPeer(ended, false);
    --server->connections_;
    delete ended;
  }

  static Server::Connection* ConnectionOf(MHD_Connection* connection) {
    return static_cast<Server::Connection*>(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  }

  static void OnCompleted(void*, MHD_Connection* connection, void** state,
                          MHD_RequestTerminationCode) {
    if (*state == nullptr) return;
    Server::Connection* const owner = ConnectionOf(connection);
    const std::shared_ptr<Exchange> exchange = std::move(owner->exchange);
    owner->server->WatchPeer(owner, false);
    if (owner->deadline_us == 0) {
      --owner->server->open_requests_;
      owner->server->ExpectRequest(owner);
    }
    exchange->Detach();
  }

  // Called for the head, for each part of the body, at its end, and after a suspension.
  static MHD_Result OnRequest(void*, MHD_Connection* connection, const char* url,
                              const char* method, const char*, const char* body, size_t* body_bytes,
                              void** state) {
    Server::Connection* const owner = ConnectionOf(connection);
    if (*state == nullptr) return OnHead(owner, connection, url, method, state);
    Exchange& exchange = *owner->exchange;
    if (*body_bytes != 0) return OnBody(*owner->server, &exchange, body, body_bytes);
    if (owner->deadline_us != 0) OnWhole(owner);
    if (!exchange.replied()) owner->server->WatchPeer(owner, true);
    if (exchange.answered() || exchange.lost()) return exchange.QueueAnswer() ? MHD_YES : MHD_NO;
    exchange.Suspend();
    return MHD_YES;
  }

  static MHD_Result OnHead(Server::Connection* owner, MHD_Connection* connection, const char* url,
                           const char* method, void** state) {
    Server& server = *owner->server;
    owner->exchange =
        std::make_shared<Exchange>(connection, owner->socket, server.options_.unread_bytes_max);
    *state = owner->exchange.get();
    Request& request = owner->exchange->request();
    request.method = method;
    request.path = url;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &AddHeader, &request.headers);
    request.id = HeaderOf(request, "x-request-id");
    if (!IsId(request.id)) request.id = absl::StrCat("request-", ++server.last_id_);
    if (!IsTooLong(HeaderOf(request, "content-length"), 2 * server.options_.body_bytes_max))
      return MHD_YES;
    owner->exchange->Reply(TooLarge(server));
    return owner->exchange->QueueAnswer() ? MHD_YES : MHD_NO;
  }

  // A too long body is read up to twice the bound, so that a client that sends before it listens
  // gets the answer. Unread bytes at the end of a connection would destroy the answer.
  static MHD_Result OnBody(const Server& server, Exchange* exchange, const char* body,
                           size_t* body_bytes) {
    std::string& whole = exchange->request().body;
    if (whole.size() + *body_bytes > 2 * server.options_.body_bytes_max) return MHD_NO;
    whole.append(body, *body_bytes);
    *body_bytes = 0;
    return MHD_YES;
  }

  static void OnWhole(Server::Connection* owner) {
    Server& server = *owner->server;
    server.deadlines_.erase({std::exchange(owner->deadline_us, 0), owner});
    ++server.open_requests_;
    const std::shared_ptr<Exchange> exchange = owner->exchange;
    if (exchange->request().body.size() > server.options_.body_bytes_max)
      return exchange->Reply(TooLarge(server));
    if (server.Refuses(exchange->request()))
      return exchange->Reply(server.handler_->Refusal(
          403, "pages of other sites may not use this server; start it with a file of keys"));
    Request request = exchange->request();  // the exchange keeps the id
    exchange->request().body.clear();
    server.handler_->OnRequest(std::move(request), exchange);
  }

  static Answer TooLarge(const Server& server) {
    return server.handler_->Refusal(
        413, absl::StrCat("the body has over ", server.options_.body_bytes_max, " bytes"));
  }
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Listener listener, ServerOptions options,
                                                      Handler* handler,
                                                      std::function<int64_t()> now_us) {
  options.connections_max = ConnectionsPossible(options.connections_max);
  std::unique_ptr<Server> server(
      new Server(std::move(listener), options, handler, std::move(now_us)));
  if (const absl::Status started = server->StartLibrary(); !started.ok()) return started;
  return server;
}

Server::Server(Listener listener, ServerOptions options, Handler* handler,
               std::function<int64_t()> now)
    : listener_(std::move(listener)),
      options_(options),
      handler_(handler),
      now_us_(std::move(now)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

// The library must not stop with suspended connections.
Server::~Server() {
  if (library_ == nullptr) return;
  for (Connection* const connection : std::exchange(watched_, {})) {
    connection->is_watched = false;
    connection->exchange->Lose();
  }
  MHD_run(library_);
  MHD_stop_daemon(library_);
}

// The server accepts itself, since the library leaves connections beyond its limit without an
// answer.
absl::Status Server::StartLibrary() {
  library_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
      &LibraryCalls::OnRequest, this, MHD_OPTION_NOTIFY_COMPLETED, &LibraryCalls::OnCompleted, this,
      MHD_OPTION_NOTIFY_CONNECTION, &LibraryCalls::OnConnection, this, MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned>(options_.connections_max), MHD_OPTION_CONNECTION_TIMEOUT,
      options_.idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, options_.header_bytes_max,
      MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
  if (library_ == nullptr || !epoll_.valid())
    return absl::UnavailableError("cannot start the server: no descriptors left; raise ulimit -n");
  epoll_event event{};
  event.events = EPOLLIN;
  const int library = MHD_get_daemon_info(library_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, library, &event) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.socket.get(), &event) != 0)
    return absl::UnavailableError(absl::StrCat("cannot watch sockets: ", std::strerror(errno)));
  return absl::OkStatus();
}

int Server::Run() {
  OnSocketEvents();
  CloseLate();
  if (accept_again_us_ <= now_us_()) Accept();
  for (int turn = 0; turn < kTurnsMax; ++turn) {
    MHD_run(library_);
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (MHD_get_timeout(library_, &timeout_ms) != MHD_YES || timeout_ms != 0) break;
  }
  return NextRunMs();
}

void Server::StopListening() { listener_.socket.Reset(); }

// --- connections ---------------------------------------------------------------------------------

void Server::Accept() {
  accept_again_us_ = 0;
  while (listener_.socket.valid()) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int socket = accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (socket < 0) {
      // The listener stays readable without a descriptor for its client: try again later.
      if (errno != EAGAIN) accept_again_us_ = now_us_() + kNoDescriptorsUs;
      return;
    }
    if (connections_ >= options_.connections_max) {
      RefuseConnection(socket);
    } else {
      // The library closes the socket when it fails.
      (void)MHD_add_connection(library_, socket, reinterpret_cast<sockaddr*>(&address), size);
    }
  }
}

void Server::RefuseConnection(int socket) {
  const Descriptor owner(socket);
  const Answer answer = handler_->Refusal(503, "too many connections are open; try again later");
  const std::string text = absl::StrCat(
      "HTTP/1.1 503 Service Unavailable\r\ncontent-type: ", answer.type,
      "\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: ", answer.body.size(), "\r\n\r\n",
      answer.body);
  (void)!send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)shutdown(socket, SHUT_WR);
  // Unread bytes at the close would reset the connection before the client has the answer.
  char ignored[4096];
  while (recv(socket, ignored, sizeof ignored, MSG_DONTWAIT) > 0) continue;
}

void Server::ExpectRequest(Connection* connection) {
  connection->deadline_us = now_us_() + options_.request_us;
  deadlines_.insert({connection->deadline_us, connection});
}

// The library sees the end of such a socket, and closes it.
void Server::CloseLate() {
  const int64_t now = now_us_();
  for (auto next = deadlines_.begin(); next != deadlines_.end() && next->first <= now;) {
    Connection* const late = next->second;
    next = deadlines_.erase(next);
    late->deadline_us = now + options_.request_us;  // should it still be there
    deadlines_.insert({late->deadline_us, late});
    (void)shutdown(late->socket, SHUT_RDWR);
  }
}

void Server::WatchPeer(Connection* connection, bool watch) {
  if (std::exchange(connection->is_watched, watch) == watch) return;
  epoll_event event{};
  event.events = EPOLLRDHUP;
  event.data.ptr = connection;
  (void)epoll_ctl(epoll_.get(), watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, connection->socket, &event);
  if (watch) {
    watched_.insert(connection);
  } else {
    watched_.erase(connection);
  }
}

// One event at a time: what a lost connection's request does may end other connections.
void Server::OnSocketEvents() {
  for (size_t left = connections_ + 1; left > 0; --left) {
    epoll_event events[8];
    const int count = epoll_wait(epoll_.get(), events, 8, 0);
    Connection* gone = nullptr;
    for (int i = 0; i < count && gone == nullptr; ++i)
      gone = static_cast<Connection*>(events[i].data.ptr);
    if (gone == nullptr) return;
    WatchPeer(gone, false);
    gone->exchange->Lose();
  }
}

int Server::NextRunMs() {
  int64_t next_ms = -1;
  const auto sooner = [&next_ms](int64_t ms) {
    next_ms = next_ms < 0 ? std::max<int64_t>(ms, 0) : std::min(next_ms, std::max<int64_t>(ms, 0));
  };
  MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
  if (MHD_get_timeout(library_, &timeout_ms) == MHD_YES) sooner(static_cast<int64_t>(timeout_ms));
  const int64_t now = now_us_();
  if (!deadlines_.empty()) sooner((deadlines_.begin()->first - now) / 1000 + 1);
  if (accept_again_us_ != 0) sooner((accept_again_us_ - now) / 1000 + 1);
  return static_cast<int>(std::min<int64_t>(next_ms, 1'000'000));
}

bool Server::Refuses(const Request& request) const {
  if (!options_.only_this_machine) return false;
  const std::string_view host = HeaderOf(request, "host");
  return (!host.empty() && !IsThisMachine(host)) ||
         !IsOriginOfThisMachine(HeaderOf(request, "origin"));
}

}  // namespace serve::http

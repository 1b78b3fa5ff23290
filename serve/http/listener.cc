#include "serve/http/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace serve::http {
namespace {

constexpr int kBacklog = 1024;
// Bounds what the kernel keeps for a client that does not read; the server's own bound comes on
// top.
constexpr int kSendBytes = 256 << 10;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  bool is_loopback = false;
};

absl::StatusOr<Address> Resolve(const std::string& host, uint16_t port) {
  const std::string numeric = absl::EqualsIgnoreCase(host, "localhost") ? "127.0.0.1" : host;
  Address address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, numeric.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.size = sizeof v4;
    address.is_loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
    std::memcpy(&address.bytes, &v4, sizeof v4);
    return address;
  }
  if (inet_pton(AF_INET6, numeric.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
    address.is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    std::memcpy(&address.bytes, &v6, sizeof v6);
    return address;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", host, "' is no numeric address; give one such as 127.0.0.1 or 0.0.0.0"));
}

uint16_t PortOf(int socket) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return 0;
  return ntohs(bytes.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bytes).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bytes).sin_port);
}

}  // namespace

absl::StatusOr<Listener> Listen(const std::string& host, uint16_t port, bool has_keys) {
  const absl::StatusOr<Address> address = Resolve(host, port);
  if (!address.ok()) return address.status();
  if (!address->is_loopback && !has_keys)
    return absl::FailedPreconditionError(
        absl::StrCat("at ", host,
                     " other machines could use the model, and no key is asked for; "
                     "name a file of keys, or listen at 127.0.0.1"));
  Listener listener;
  listener.is_loopback = address->is_loopback;
  listener.socket =
      Descriptor(socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  const int socket = listener.socket.get();
  (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof kSendBytes);
  if (!listener.socket.valid() ||
      bind(socket, reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0 ||
      listen(socket, kBacklog) != 0)
    return absl::UnavailableError(absl::StrCat("cannot listen at ", host, " port ", port, ": ",
                                               std::strerror(errno), "; choose another port"));
  listener.port = PortOf(socket);
  return listener;
}

bool IsThisMachine(std::string_view host_and_port) {
  std::string_view host = host_and_port;
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (has_port) host = host.substr(0, colon);
  return host == "127.0.0.1" || host == "[::1]" ||
         absl::EqualsIgnoreCase({host.data(), host.size()}, "localhost");
}

bool IsOriginOfThisMachine(std::string_view origin) {
  if (origin.empty()) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && IsThisMachine(origin.substr(scheme + 3));
}

}  // namespace serve::http

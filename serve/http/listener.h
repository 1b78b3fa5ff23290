// The socket where clients connect, and who may reach it.
//
// A page in a browser of this machine can send requests to 127.0.0.1, and a name that its owner
// points at 127.0.0.1 lets it read the answers. Where no key is asked for, requests of such pages
// are known by their Host and Origin headers.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "serve/loop/descriptor.h"

namespace serve::http {

struct Listener {
  Descriptor socket;  // does not block
  uint16_t port = 0;
  bool is_loopback = true;
};

// `host` is a numeric address of IPv4 or IPv6, or localhost. Port 0: any free one. Refused: an
// address that other machines reach while no key is asked for.
absl::StatusOr<Listener> Listen(const std::string& host, uint16_t port, bool has_keys);

// True for localhost, 127.0.0.1 and [::1] with any port.
bool IsThisMachine(std::string_view host_and_port);
// `origin` is the header's value; empty: there is none, as for programs that are no browser.
bool IsOriginOfThisMachine(std::string_view origin);

}  // namespace serve::http

// Server-sent events (HTML Living Standard, section 9.2): an answer in pieces.
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

namespace serve::http {

// One event. `data` may have several lines, each of which gets a field of its own, as the standard
// asks; CR, LF and CR LF end a line.
std::string EventOf(std::string_view data);

}  // namespace serve::http

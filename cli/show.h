// What `laneway status` and `laneway ps` print, from the daemon's JSON. Pure. Thread safety:
// stateless.
#pragma once

#include <string>

namespace cli {

// The whole picture, for people.
std::string StatusText(const std::string& status_json);

// A line per session under a head line; from the answer to "top".
std::string SessionsText(const std::string& top_json);

}  // namespace cli

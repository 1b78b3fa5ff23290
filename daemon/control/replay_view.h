// How the iterations of a session are replayed, for people: from its page, which the client and the
// worker write (ipc/client_words.h). No decision rests on it. Thread safety: stateless.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/control/session_table.h"

namespace control {

// {"state", "launches", "replayed", "time_ratio", "from_earlier_start", "comparisons", "verified",
// "mismatches", "mismatch"}; null without a page.
nlohmann::json ReplayJson(const Session& session);

// A clause of `laneway why`: "93 % of its launches are replayed, in 0.71 of the time". Empty: the
// user has not asked for replay, or there is nothing to say yet.
std::string ReplayText(const Session& session);

}  // namespace control

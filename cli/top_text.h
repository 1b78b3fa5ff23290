// A screenful of `laneway top` from the daemon's JSON. Pure. Thread safety: stateless.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

// Head lines, then a line per session, the busiest lanes' first; no line is wider than `width`
// columns and there are at most `height` of them (0: any). What did not fit is counted in the last
// line.
std::string TopText(const std::string& top_json, size_t width, size_t height);

}  // namespace cli

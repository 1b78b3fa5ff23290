// The call tables in words: docs/coverage.md and what `laneway calls` prints.
// Thread safety: functions of constant data.
#pragma once

#include <cstddef>
#include <string>

#include "ipc/calls.h"

namespace ipc {

// How many rows of a library take each route.
struct Coverage {
  size_t forwarded = 0;  // round trip or queued
  size_t local = 0;      // answered by the shim
  size_t denied = 0;
  size_t rows() const { return forwarded + local + denied; }
};
Coverage CoverageOf(Library library);

// The page: a summary, then every call with its route or the reason why there is none.
std::string CoverageMarkdown();

// One line per call whose name contains `pattern` (all when it is empty), for a terminal: library,
// route, name, and its roles or the reason.
std::string CallsText(std::string_view pattern);

}  // namespace ipc

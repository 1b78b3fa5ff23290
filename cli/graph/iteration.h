// One whole iteration among a session's records: all that was sent and waited for between two
// boundaries. Pure. Thread safety: stateless.
#pragma once

#include <span>

#include "cli/graph/records.h"

namespace graph {

// The first iteration of which no record was lost, or an empty one: there is none yet. Points into
// `records`.
std::span<const Record> FirstWholeIteration(std::span<const Record> records);

}  // namespace graph

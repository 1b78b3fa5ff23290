// The figures of a load, for people and for programs. Pure. Thread safety: stateless.
#pragma once

#include <string>

#include "cli/load/summary.h"

namespace load {

std::string SummaryText(const Summary& summary, const Goals& goals);
std::string SummaryJson(const Summary& summary, const Goals& goals);

}  // namespace load

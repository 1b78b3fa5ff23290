// CLI11 over the table of ipc/options.h. Apart from options.h because CLI11 is heavy. Thread
// safety: main().
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ipc/options.h"

namespace ipc {

// Adds the long flags to `app`, or `only` some of them. A bad value throws CLI::ValidationError
// with one sentence.
void AddFlags(CLI::App* app, Options* options, const std::vector<std::string>& only = {});

// What a parse error means, in one sentence: "unknown flag --foo; see lanewayd --help".
std::string SentenceOf(const CLI::App& app, const CLI::ParseError& error);

}  // namespace ipc

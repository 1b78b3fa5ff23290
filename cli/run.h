// `laneway run -- PROGRAM`: makes the program a client and becomes it, as far as a parent can: its
// signals, its exit code. Thread safety: used in main().
#pragma once

#include <string>
#include <vector>

#include "ipc/options.h"

namespace cli {

inline constexpr int kLanewayFailed = 125;  // the codes of env, timeout and docker run
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

// The program's exit code, 128 + its signal, or one of the above after a sentence on stderr.
// `recording`: the file for a function that the client in the program records; empty: none.
int Run(const ipc::Options& options, const std::vector<std::string>& command,
        const std::string& recording = "");

// The libraries that stand in for the vendor's where the device is shared.
std::vector<std::string> Facades();

}  // namespace cli

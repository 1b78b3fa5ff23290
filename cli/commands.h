// The commands of `laneway`, declared once for the command line and the manual page (manual.h).
// Thread safety: constants.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct CommandInfo {
  const char* name;
  const char* synopsis;            // after "laneway NAME"
  const char* help;                // one sentence, no stop
  std::vector<std::string> flags;  // of ipc/options.h; empty: all of them
};

const std::vector<CommandInfo>& Commands();

}  // namespace cli

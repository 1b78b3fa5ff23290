// Launch messages of this client, taken apart again. Thread safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ipc/handles.h"

namespace shim {

struct LaunchMessage {
  ipc::HandleId function = ipc::HandleId::kNull;
  ipc::HandleId stream = ipc::HandleId::kNull;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned attributes = 0;
  size_t params_at = 0;  // the block of parameters, from the message's beginning
  size_t param_bytes = 0;
};

// None: it is no Launch.
std::optional<LaunchMessage> ReadLaunch(std::span<const std::byte> message);

// Launches of a chunk that follow each other, on one stream of one context.
struct LaunchRun {
  size_t begin = 0, end = 0;  // in the chunk
  std::vector<LaunchMessage> launches;
  std::vector<size_t> places;  // of each, in the chunk
};

// `messages`: whole ones, each padded to 8 bytes. Runs are cut where the worker cuts a chunk with
// orders (daemon/worker/launch_runs.h): at other calls, fills and copies among them, where the
// stream changes, and at launches with attributes, for which it makes no graph.
// Those that are too short for a graph are left out.
std::vector<LaunchRun> LaunchRunsIn(std::span<const std::byte> messages);

}  // namespace shim

// What lanewayd remembers of finished jobs: a JSON object per line in $STATE/history.jsonl, which
// `laneway history` reads whether or not a daemon runs.
//
// Files are untrusted: a person may edit them, a disk may tear them. A line that is no record is
// skipped and counted. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ipc {

inline constexpr char kHistoryName[] = "history.jsonl";
inline constexpr size_t kHistoryBytesMax = 1 << 20;  // of one file; there may be an older one, .1
inline constexpr size_t kHistoryLineMax = 4096;
inline constexpr size_t kCommandBytesMax = 1024;  // of a command's text; longer ones are cut
inline constexpr int kExitUnknown = -1;

struct HistoryRecord {
  uint64_t job = 0;
  std::string command;
  int64_t begin_s = 0;  // seconds since 1970
  int64_t end_s = 0;
  uint64_t ran_us = 0;  // from its first session's begin to its last one's end
  uint64_t sessions = 0;
  uint64_t iterations = 0;
  uint64_t p50_us = 0;  // of an iteration
  uint64_t p99_us = 0;
  uint64_t waited_us = 0;
  uint64_t peak_bytes = 0;  // of device memory
  int exit = kExitUnknown;  // the program's code, or 128 + signal
  std::string note;         // what went wrong, in a sentence; mostly empty
};

// With its newline; at most kHistoryLineMax bytes.
std::string HistoryLine(const HistoryRecord& record);

struct HistoryRead {
  std::vector<HistoryRecord> records;  // in the file's order
  size_t skipped = 0;                  // lines that are none
};
HistoryRead ReadHistoryUntrusted(std::string_view text);

}  // namespace ipc

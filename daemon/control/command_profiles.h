// Profiles of commands from their earlier runs: iterations, times, memory, and how much slower the
// command runs beside other commands. Kept in $STATE/learned.jsonl, for the next daemon.
//
// A command is its executable and its arguments; later runs weigh more: half the weight per run.
// No safety rests on a profile: it decides the order of sessions and how much memory to keep free,
// and a wrong figure costs time. The file is untrusted: lines without an entry are skipped. Thread
// safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace control {

// One run, or the mean of several.
struct Needs {
  int64_t iterations = 0;
  int64_t iteration_us = 0;  // with the device to itself, as far as that was seen
  int64_t total_us = 0;      // of iterating, without waits
  int64_t persistent_bytes = 0;
  int64_t ephemeral_bytes = 0;
};

// Beside another command: how long an iteration took, in thousandths of one alone.
struct Interference {
  int64_t permille = 1000;
  int64_t samples = 0;
};

struct CommandProfile {
  std::string command;  // for people
  Needs needs;
  int64_t runs = 0;
  int64_t used_s = 0;                       // when it ran last, seconds since 1970
  std::map<uint64_t, Interference> beside;  // by the other command's key
};

class CommandProfiles {
 public:
  static constexpr size_t kCommandsMax = 1000;  // the one unused for longest makes room
  static constexpr size_t kBesideMax = 16;
  static constexpr size_t kFileBytesMax = 4 << 20;
  static constexpr int64_t kVersion = 1;

  static uint64_t KeyOf(std::string_view executable, std::string_view arguments);

  // Null when it never ended before.
  const CommandProfile* Find(uint64_t key) const;
  void Learn(uint64_t key, std::string_view command, const Needs& run, int64_t now_s);
  // REQUIRES: permille > 0. Ignored for commands that are not known.
  void LearnBeside(uint64_t key, uint64_t other, int64_t permille);

  size_t size() const { return commands_.size(); }
  // A head line with the version, then a line per command, in the order of keys.
  std::string Encode() const;
  // Takes in what the text says of commands that are not known here, or that ran later. The number
  // of lines that were skipped; all of them when it is of another version.
  size_t MergeUntrusted(std::string_view text);

 private:
  void MakeRoom();
  std::map<uint64_t, CommandProfile> commands_;
};

}  // namespace control

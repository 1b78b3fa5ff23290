// The verdicts that sessions have measured on their loop bodies: whether replay was faster.
// lanewayd keeps them for the next starts of the sessions' programs.
//
// A verdict is in force for a number of starts. Then one start gets none, and its session measures
// again. The more often measurements agree, the longer a verdict is in force. At most
// limits::kReplayVerdictsMax bodies are kept; the one unused for longest makes room.
//
// The file:
//
//     magic, version, checksum (XXH3-64 of all that follows), number of verdicts, and for each
//     verdict seven numbers: body, permille, replays, agreed, starts, measured_s, used_s
//
// All numbers have 64 bits, and bodies ascend. No safety rests on a verdict: a wrong one costs
// time. Thread safety: none; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipc/calls/limits.h"
#include "ipc/replay_verdict.h"

namespace control {

struct KeptVerdict {
  ipc::ReplayVerdict verdict;
  uint64_t agreed = 1;     // measurements in a row that came to it
  uint64_t starts = 0;     // of programs that took it, since it was measured
  int64_t measured_s = 0;  // when, in seconds since 1970; grows with each measurement
  int64_t used_s = 0;      // when it was measured or taken last
  bool operator==(const KeptVerdict&) const = default;
};

class ReplayVerdicts {
 public:
  static constexpr size_t kMax = ipc::limits::kReplayVerdictsMax;
  static constexpr uint64_t kFirstStarts = 16, kMostStarts = 256;  // that take one verdict
  static constexpr uint64_t kVersion = 1;
  static constexpr size_t kFileBytesMax = 4 * sizeof(uint64_t) + kMax * 7 * sizeof(uint64_t);

  // REQUIRES of both: IsSound(verdict).
  void Measured(const ipc::ReplayVerdict& verdict, int64_t now_s);
  // A session goes by this verdict. Ignored where the kept one says something else by now.
  void Taken(const ipc::ReplayVerdict& verdict, int64_t now_s);

  // The verdicts that a session which begins now may go by.
  std::vector<ipc::ReplayVerdict> InForce() const;

  // Takes in what another lanewayd has kept. Of two verdicts on a body the one that was measured
  // later stays. In whatever order tables are merged, the result is the same, as long as all fit.
  void Merge(const ReplayVerdicts& other);

  std::string Encode() const;
  // InvalidArgument: the end of a sentence that begins with the file's name.
  static absl::StatusOr<ReplayVerdicts> DecodeUntrusted(std::string_view file);

  size_t size() const { return kept_.size(); }
  const KeptVerdict* Find(uint64_t body) const;
  bool operator==(const ReplayVerdicts&) const = default;

 private:
  void MakeRoom();

  std::map<uint64_t, KeptVerdict> kept_;  // by body
};

}  // namespace control

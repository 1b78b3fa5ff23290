// Carries verdicts on the replay of loop bodies from one start of a program to the next.
//
// lanewayd gives a session the verdicts of earlier sessions (ipc/verdict_area.h). When an iteration
// ends whose body has one, the session goes by it. What the session measures it tells lanewayd,
// under the name of the body that half of the comparison's iterations had, or more. The body is
// found by the majority vote of Boyer and Moore, so that few iterations are named.
//
// Thread safety: under the send lock; Open() before it.
#pragma once

#include <cstdint>
#include <optional>

#include "ipc/client_words.h"
#include "ipc/verdict_area.h"

namespace shim {

// Names a body by its content: the same at each start of the program, and in each program.
class BodyNamer {
 public:
  virtual ~BodyNamer() = default;
  // Of the iteration that ended last; 0: it can't be named. Takes time for each operation.
  virtual uint64_t NameOfLast() = 0;
};

class KeptVerdicts {
 public:
  // REQUIRES: once, before any other method. All outlive this object.
  void Open(ipc::VerdictArea* area, ipc::ClientWords* words, BodyNamer* namer);

  // An iteration has ended, and the session may take over the verdict on its body. Nothing: there
  // is none. Looks at the first iterations of a new body alone; the first one may differ from the
  // rest.
  std::optional<ipc::ReplayVerdict> Find(bool is_new);

  // --- a comparison, from its begin to its verdict
  void BeginComparison() { compared_ = {}; }
  void OnCompared(uint32_t body);
  void Tell(double ratio, bool replays);

 private:
  struct Compared {
    uint64_t name = 0;  // of the body that may have most iterations
    uint32_t body = 0;
    uint32_t iterations = 0;
    uint32_t alike = 0;  // of that body, since it has the name
    uint32_t lead = 0;   // how many more others must come until another body may have most
  };
  void Tell(const ipc::ReplayVerdict& verdict, ipc::ToldVerdict::Kind kind);

  ipc::VerdictArea* area_ = nullptr;  // null until Open(): nothing is kept
  ipc::ClientWords* words_ = nullptr;
  BodyNamer* namer_ = nullptr;
  uint32_t looks_ = 0;  // that are left for the newest body
  Compared compared_;
};

}  // namespace shim

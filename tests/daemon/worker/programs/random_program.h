// Programs that repeat themselves, drawn by chance, for tests of replay.
//
// A program has a few bodies, each a list of steps, and does one of them a turn. Some arguments
// differ from turn to turn. Now and then a turn leaves a step out, does another one, ends in the
// middle, or its threads come in another order; memory is freed and allocated again at the same
// address, and names of streams and functions stand for others. Streams never race: where a step
// touches what another stream has touched, an event orders them. Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/daemon/worker/programs/step_machine.h"
#include "tests/protocol/dice.h"

namespace worker {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed);

  // The steps of the next turn. None: the program ends.
  std::vector<Step> NextTurn();

 private:
  struct Planned {
    Step step;
    uint32_t value_varies = 0;  // one time in so many; 0: never
    uint32_t other_to = 0;      // the cell of every second turn
  };
  using Body = std::vector<Planned>;
  // Of a cell: the number of each stream's last step that touched the cell.
  using Touched = std::array<std::array<uint64_t, 3>, kStreams>;  // by Access

  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(dice_.Below(bound)); }
  Body DrawBody();
  void UseScratch(Body* body);
  Planned Draw();
  uint32_t DrawCells(uint32_t count);
  // A turn that is not quite as the body is.
  void Disturb(Body* body);
  void DrawNames(std::vector<Step>* steps);
  void Take(const Planned& planned, std::vector<Step>* steps);
  // True when the program is to take this step. The program's own books then count the step.
  bool Admit(const Step& step);
  Work TouchOf(const Step& step) const;
  bool IsThere(const Work& work) const;
  // Makes the step's stream wait for all that the step must come after.
  void Order(const Step& step, std::vector<Step>* steps);
  void WaitFor(uint32_t stream, uint32_t other, const Step& step, std::vector<Step>* steps);
  void NoteFinish();

  protocol::Dice dice_;
  std::vector<Body> bodies_;
  size_t body_ = 0;
  uint32_t turns_left_ = 0;
  uint32_t turn_ = 0;
  uint32_t next_function_ = kFunctions;
  std::array<uint32_t, kFunctions> functions_;
  std::array<bool, kBuffers> there_;
  std::array<Touched, kCells> touched_{};
  std::array<uint64_t, kStreams> done_{};                         // steps of each stream
  std::array<std::array<uint64_t, kStreams>, kStreams> known_{};  // of others, by each stream
};

}  // namespace worker

#include "tests/daemon/worker/programs/random_program.h"

#include <algorithm>
#include <utility>

namespace worker {

using Kind = Step::Kind;

RandomProgram::RandomProgram(uint64_t seed) : dice_(seed) {
  for (uint32_t name = 0; name < kFunctions; ++name) functions_[name] = FirstFunction(name);
  there_.fill(true);
  bodies_.resize(1 + Below(3));
  for (Body& body : bodies_) body = DrawBody();
  turns_left_ = 8 + Below(20);
}

// --- what is planned -----------------------------------------------------------------------------

RandomProgram::Body RandomProgram::DrawBody() {
  Body body(3 + Below(dice_.OneIn(12) ? 120 : 20));
  const bool one_stream = dice_.OneIn(2), long_messages = dice_.OneIn(20);
  const uint32_t stays = 1 + Below(12);  // so long on a stream
  uint32_t stream = 0;
  for (Planned& planned : body) {
    planned = Draw();
    if (dice_.OneIn(stays)) stream = planned.step.stream;
    planned.step.stream = one_stream ? 0 : stream;
    if (long_messages && planned.step.kind == Kind::kLaunch) planned.step.more = Below(300);
  }
  if (dice_.OneIn(3)) UseScratch(&body);
  if (dice_.OneIn(4)) {
    const Step buffer{.to = DrawCells(kBufferCells)};
    body.insert(body.begin(), {{.step = {.kind = Kind::kAllocate, .to = buffer.to}}});
    body.push_back({{.kind = Kind::kFree, .to = buffer.to}});
  }
  if (!dice_.OneIn(3)) body.push_back({{.kind = Kind::kFinish}});
  return body;
}

// Launches write a cell anew and read it in turn, as branches do that share a buffer.
void RandomProgram::UseScratch(Body* body) {
  const uint32_t scratch = DrawCells(1);
  for (Planned& planned : *body) {
    if (planned.step.kind != Kind::kLaunch) continue;
    if (dice_.OneIn(2)) {
      planned.step.function = kAnewName;
      planned.step.to = planned.other_to = scratch;
    } else {
      planned.step.from = scratch;
    }
  }
}

RandomProgram::Planned RandomProgram::Draw() {
  Planned planned{.step = {.thread = Below(6) == 0 ? Below(kThreads) : 0,
                           .stream = Below(kStreams),
                           .event = Below(kEvents),
                           .function = Below(kFunctions),
                           .value = Below(1000)}};
  Step& step = planned.step;
  const uint32_t kind = Below(40);
  step.kind = kind < 26   ? Kind::kLaunch
              : kind < 30 ? Kind::kFill
              : kind < 34 ? Kind::kCopy
              : kind < 36 ? Kind::kRecord
              : kind < 38 ? Kind::kWait
              : kind < 39 ? Kind::kFinish
                          : Kind::kLaunch;
  if (step.kind == Kind::kFill || step.kind == Kind::kCopy) step.count = 1 + Below(kBufferCells);
  if (step.kind == Kind::kLaunch && dice_.OneIn(3)) step.more = Below(6);
  const uint32_t cells = step.kind == Kind::kLaunch ? 1 : step.count;
  step.to = planned.other_to = DrawCells(cells);
  step.from = DrawCells(cells);
  if (dice_.OneIn(8)) planned.other_to = DrawCells(cells);
  if (dice_.OneIn(4)) planned.value_varies = 1 + Below(4);
  return planned;
}

// The first of so many cells of one buffer.
uint32_t RandomProgram::DrawCells(uint32_t count) {
  return Below(kBuffers) * kBufferCells + Below(kBufferCells - count + 1);
}

void RandomProgram::Disturb(Body* body) {
  const uint32_t at = Below(static_cast<uint32_t>(body->size()));
  const auto there = body->begin() + at;
  switch (Below(6)) {
    case 0:
      body->resize(at + 1);
      return;
    case 1:
      body->erase(there);
      return;
    case 2:
      body->insert(there, Draw());
      return;
    case 3:
      *there = Draw();
      return;
    case 4:
      if (there + 1 != body->end()) std::swap(*there, *(there + 1));
      return;
    default:
      there->step.count = there->step.kind == Kind::kLaunch ? 1 + Below(9) : there->step.count;
      there->step.from = there->step.kind == Kind::kLaunch ? DrawCells(1) : there->step.from;
      return;
  }
}

// --- what is done --------------------------------------------------------------------------------

std::vector<Step> RandomProgram::NextTurn() {
  std::vector<Step> steps;
  if (turns_left_ == 0) return steps;
  --turns_left_;
  ++turn_;
  if (dice_.OneIn(5)) body_ = Below(static_cast<uint32_t>(bodies_.size()));
  if (dice_.OneIn(40)) bodies_[body_] = DrawBody();
  if (dice_.OneIn(20)) DrawNames(&steps);
  Body body = bodies_[body_];
  while (dice_.OneIn(6) && !body.empty()) Disturb(&body);
  for (const Planned& planned : body) Take(planned, &steps);
  if (steps.empty()) steps.push_back({.kind = Kind::kFinish});
  return steps;
}

void RandomProgram::DrawNames(std::vector<Step>* steps) {
  if (dice_.OneIn(2)) {
    NoteFinish();
    steps->push_back({.kind = Kind::kNewStream, .stream = Below(kStreams)});
    return;
  }
  const uint32_t name = Below(kFunctions);
  functions_[name] =
      kEffects * next_function_++ + kFirstOfKernels + Below(kEffects - kFirstOfKernels);
  steps->push_back({.kind = Kind::kNewFunction, .function = name, .value = functions_[name]});
}

void RandomProgram::Take(const Planned& planned, std::vector<Step>* steps) {
  Step step = planned.step;
  if (turn_ % 2 == 1) step.to = planned.other_to;
  if (planned.value_varies != 0 && dice_.OneIn(planned.value_varies)) step.value = Below(1u << 30);
  if (!Admit(step)) return;
  Order(step, steps);
  steps->push_back(step);
}

bool RandomProgram::Admit(const Step& step) {
  switch (step.kind) {
    case Kind::kLaunch:
      return IsThere(TouchOf(step));
    case Kind::kFill:
    case Kind::kCopy:  // of memory that is not there is refused
      return IsThere(TouchOf(step)) || dice_.OneIn(4);
    case Kind::kAllocate:
    case Kind::kFree:
      if (there_[step.buffer()] == (step.kind == Kind::kAllocate)) return false;
      there_[step.buffer()] = step.kind == Kind::kAllocate;
      NoteFinish();
      return true;
    case Kind::kFinish:
      NoteFinish();
      return true;
    default:
      return true;
  }
}

Work RandomProgram::TouchOf(const Step& step) const {
  Work work{.to = static_cast<uint32_t>(step.to),
            .from = static_cast<uint32_t>(step.from),
            .count = step.count};
  if (step.kind == Kind::kFill) work.function = static_cast<uint32_t>(Effect::kFill);
  if (step.kind == Kind::kCopy) work.function = static_cast<uint32_t>(Effect::kCopy);
  if (step.kind == Kind::kLaunch) work.function = functions_[step.function];
  return work;
}

bool RandomProgram::IsThere(const Work& work) const {
  bool is_there = true;
  ForEachTouch(work, [&](uint32_t cell, Access) { is_there &= there_[cell / kBufferCells]; });
  return is_there;
}

// --- order among streams -------------------------------------------------------------------------

void RandomProgram::Order(const Step& step, std::vector<Step>* steps) {
  if (!step.IsWork() || !IsThere(TouchOf(step))) return;
  const uint32_t stream = step.stream;
  ForEachTouch(TouchOf(step), [&](uint32_t cell, Access access) {
    for (uint32_t other = 0; other < kStreams; ++other) {
      if (other == stream) continue;
      for (const Access before : {Access::kRead, Access::kWrite, Access::kAdd}) {
        const uint64_t number = touched_[cell][other][static_cast<size_t>(before)];
        if (AreInConflict(before, access) && number > known_[stream][other])
          WaitFor(stream, other, step, steps);
      }
    }
  });
  const uint64_t number = ++done_[stream];
  ForEachTouch(TouchOf(step), [&](uint32_t cell, Access access) {
    touched_[cell][stream][static_cast<size_t>(access)] = number;
  });
}

void RandomProgram::WaitFor(uint32_t stream, uint32_t other, const Step& step,
                            std::vector<Step>* steps) {
  const uint32_t event = (stream + 2 * other) % kEvents;
  steps->push_back({.kind = Kind::kRecord, .thread = step.thread, .stream = other, .event = event});
  steps->push_back({.kind = Kind::kWait, .thread = step.thread, .stream = stream, .event = event});
  known_[stream][other] = done_[other];
  for (uint32_t third = 0; third < kStreams; ++third)
    known_[stream][third] = std::max(known_[stream][third], known_[other][third]);
}

void RandomProgram::NoteFinish() {
  for (std::array<uint64_t, kStreams>& known : known_) known = done_;
}

}  // namespace worker

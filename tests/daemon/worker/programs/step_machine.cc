#include "tests/daemon/worker/programs/step_machine.h"

#include <cstring>

namespace worker {

std::vector<std::byte> BytesOf(const Step& step) {
  std::vector<std::byte> bytes(sizeof step + step.more * sizeof(uint32_t));
  std::memcpy(bytes.data(), &step, sizeof step);
  for (uint32_t i = 0; i < step.more; ++i) {
    const uint32_t word = i % 5 == 0 ? step.value + i : i;
    std::memcpy(bytes.data() + sizeof step + i * sizeof word, &word, sizeof word);
  }
  return bytes;
}

Step StepAt(std::span<const std::byte> body) {
  Step step;
  std::memcpy(&step, body.data(), sizeof step);
  return step;
}

StepMachine::StepMachine(uint64_t seed) : device_(seed) {
  for (uint32_t& stream : streams_) stream = device_.CreateStream();
  for (uint32_t name = 0; name < kFunctions; ++name) functions_[name] = FirstFunction(name);
  there_.fill(true);
}

Work StepMachine::WorkOf(const Step& step, std::span<const std::byte> body) const {
  Work work = {.to = static_cast<uint32_t>(step.to),
               .from = static_cast<uint32_t>(step.from),
               .value = step.value,
               .count = step.count};
  if (step.kind == Step::Kind::kFill) {
    work.function = static_cast<uint32_t>(Effect::kFill);
  } else if (step.kind == Step::Kind::kCopy) {
    work.function = static_cast<uint32_t>(Effect::kCopy);
    work.value = 0;
  } else {
    work.function = functions_[step.function];
    work.more = SumOfWords(body.data() + sizeof step, body.size() / sizeof(uint32_t) - kStepWords);
  }
  if (step.kind == Step::Kind::kFill) work.from = 0;
  return work;
}

void StepMachine::Do(std::span<const std::byte> body) {
  const Step step = StepAt(body);
  const uint32_t stream = streams_[step.stream];
  switch (step.kind) {
    case Step::Kind::kLaunch:
      return device_.Do(stream, WorkOf(step, body));
    case Step::Kind::kFill:
    case Step::Kind::kCopy:
      if (AreThere(step)) return device_.Do(stream, WorkOf(step, body));
      return refused_.push_back(step.value);
    case Step::Kind::kRecord:
      events_[step.event] = Event{stream, device_.End(stream)};
      return;
    case Step::Kind::kWait:
      if (const std::optional<Event>& event = events_[step.event]; event.has_value())
        device_.WaitFor(stream, event->stream, event->end);
      return;
    case Step::Kind::kFree:
      return SetThere(step, false);
    case Step::Kind::kAllocate:
      return SetThere(step, true);
    case Step::Kind::kNewStream:
      device_.Finish();
      streams_[step.stream] = device_.CreateStream();
      return;
    case Step::Kind::kNewFunction:
      functions_[step.function] = step.value;
      return;
    case Step::Kind::kFinish:
      return device_.Finish();
  }
}

bool StepMachine::AreThere(const Step& step) const {
  return there_[step.buffer()] &&
         (step.kind == Step::Kind::kFill || there_[step.from / kBufferCells]);
}

void StepMachine::SetThere(const Step& step, bool there) {
  device_.Finish();
  there_[step.buffer()] = there;
  device_.Fill(step.buffer() * kBufferCells, kBufferCells, there ? 0 : ~0u);
}

}  // namespace worker

#include "cli/graph/program_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ipc/calls/limits.h"
#include "tests/harness/seed.h"

namespace graph {
namespace {

// What a random program does, a step at a time. Streams 0 and 1 are legacy streams of devices 0 and
// 1; of the others the odd ones do not keep order with these.
struct Step {
  enum Kind { kWork, kRecord, kWaitEvent, kJoin, kHostWait } kind = kWork;
  uint32_t slot = 0;
  uint32_t thread = 0;
  uint64_t event = 0;
  HostWait wait;
};

constexpr uint32_t kLegacy = ipc::limits::kLegacySlots;

uint32_t SlotAt(uint32_t number) { return number < 2 ? number : kLegacy + number; }
uint32_t DeviceOf(uint32_t slot) { return slot < kLegacy ? slot : slot / 2 % 2; }
bool Keeps(uint32_t slot) { return slot < kLegacy || slot % 2 == 0; }
bool IsLegacySlot(uint32_t slot) { return slot < kLegacy; }

SentCall CallOn(uint32_t slot) {
  SentCall call;
  call.slot = slot;
  call.device = DeviceOf(slot);
  call.keeps_order_with_legacy = Keeps(slot);
  return call;
}

std::vector<Step> RandomProgram(std::mt19937_64* random) {
  std::vector<Step> steps;
  for (uint64_t i = 3 + (*random)() % 14; i != 0; --i) {
    Step step;
    const uint64_t what = (*random)() % 12;
    step.kind = what < 6    ? Step::kWork
                : what < 8  ? Step::kRecord
                : what < 10 ? Step::kWaitEvent
                : what < 11 ? Step::kHostWait
                            : Step::kJoin;
    step.slot = SlotAt(static_cast<uint32_t>((*random)() % 6));
    step.thread = static_cast<uint32_t>((*random)() % 2);
    step.event = (*random)() % 2;
    step.wait = {static_cast<ipc::WaitedFor>((*random)() % 3), step.slot, step.event};
    if (step.wait.what == ipc::WaitedFor::kDevice)
      step.wait.slot = static_cast<uint32_t>((*random)() % 2);
    steps.push_back(step);
  }
  return steps;
}

bool LegacyOrders(uint32_t a, uint32_t b) {
  return DeviceOf(a) == DeviceOf(b) && Keeps(a) && Keeps(b) && (IsLegacySlot(a) || IsLegacySlot(b));
}

// Whether the later step waits for the earlier one by itself, as CUDA says.
bool Orders(const std::vector<Step>& steps, size_t i, size_t j) {
  const Step& a = steps[i];
  const Step& b = steps[j];
  const auto is_last_record = [&](uint64_t event) {
    for (size_t k = i + 1; k < j; ++k) {
      if (steps[k].kind == Step::kRecord && steps[k].event == event) return false;
    }
    return a.kind == Step::kRecord && a.event == event;
  };
  if (b.kind == Step::kWaitEvent && is_last_record(b.event)) return true;
  if (b.kind == Step::kHostWait && b.wait.what == ipc::WaitedFor::kEvent && is_last_record(b.event))
    return true;
  if (a.kind == Step::kHostWait)
    return b.thread == a.thread && (b.kind == Step::kWork || b.kind == Step::kHostWait);
  if (a.kind == Step::kRecord) return false;
  if (a.kind == Step::kJoin)
    return b.kind != Step::kHostWait || b.wait.what != ipc::WaitedFor::kEvent;
  if (b.kind == Step::kJoin) return true;
  if (b.kind == Step::kHostWait) {
    if (b.wait.what == ipc::WaitedFor::kDevice) return DeviceOf(a.slot) == b.wait.slot;
    if (b.wait.what == ipc::WaitedFor::kEvent) return false;
    return a.slot == b.wait.slot ||
           (IsLegacySlot(b.wait.slot) && LegacyOrders(a.slot, b.wait.slot));
  }
  return a.slot == b.slot || (b.kind != Step::kWaitEvent && LegacyOrders(a.slot, b.slot));
}

using Closure = std::vector<std::vector<bool>>;

void Close(Closure* reaches) {
  for (size_t k = 0; k < reaches->size(); ++k) {
    for (size_t i = 0; i < reaches->size(); ++i) {
      for (size_t j = 0; j < reaches->size(); ++j)
        if ((*reaches)[i][k] && (*reaches)[k][j]) (*reaches)[i][j] = true;
    }
  }
}

TEST(ProgramOrderTest, IsWhatCudaSaysOfRandomPrograms) {
  std::mt19937_64 random(harness::Seed());
  size_t ordered = 0, unordered = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Step> steps = RandomProgram(&random);
    Closure expected(steps.size(), std::vector<bool>(steps.size()));
    for (size_t j = 0; j < steps.size(); ++j) {
      for (size_t i = 0; i < j; ++i) expected[i][j] = Orders(steps, i, j);
    }
    Close(&expected);
    ProgramOrder order;
    std::vector<size_t> places;  // of the operations among the steps
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const NodeId node = static_cast<NodeId>(places.size());
      const SentCall call = CallOn(step.slot);
      if (step.kind == Step::kRecord) order.RecordEvent(step.event, call);
      if (step.kind == Step::kWaitEvent) order.WaitForEvent(step.event, call);
      if (step.kind == Step::kJoin) order.Join();
      if (step.kind == Step::kWork) order.AddWork(node, call, step.thread);
      if (step.kind == Step::kWork ||
          (step.kind == Step::kHostWait && order.AddHostWait(node, step.wait, step.thread)))
        places.push_back(i);
    }
    Closure found(places.size(), std::vector<bool>(places.size()));
    for (const Edge& edge : order.edges()) {
      ASSERT_LT(edge.from, edge.to);
      found[static_cast<size_t>(edge.from)][static_cast<size_t>(edge.to)] = true;
    }
    Close(&found);
    for (size_t i = 0; i < places.size(); ++i) {
      for (size_t j = i + 1; j < places.size(); ++j) {
        const bool wanted = expected[places[i]][places[j]];
        ASSERT_EQ(found[i][j], wanted)
            << "round " << round << ", steps " << places[i] << " and " << places[j];
        ++(wanted ? ordered : unordered);
      }
    }
  }
  EXPECT_GT(ordered, 1000u);
  EXPECT_GT(unordered, 1000u);
}

}  // namespace
}  // namespace graph

#include "tests/daemon/worker/programs/program_orders.h"

#include <cstddef>

#include "ipc/message.h"
#include "replay/versions.h"
#include "tests/daemon/worker/programs/program_worker.h"

namespace worker {
namespace {

Step StepOfMessage(std::span<const std::byte> messages, size_t at) {
  return StepAt(messages.subspan(at + sizeof(ipc::MessageHeader)));
}

// Of one launch, by cells in place of bytes. Each argument is an address that may be another.
replay::LaunchTouches TouchesOf(const Work& work) {
  using scheduler::streams::Access;
  replay::LaunchTouches launch;
  const auto add = [&launch](size_t offset, uint64_t cell, Access access) {
    const scheduler::streams::Touch touch{{cell, 1}, access};
    launch.by_parameter.push_back(
        {static_cast<uint32_t>(offset - offsetof(Step, to)), cell, touch});
  };
  const Effect effect = EffectOf(work.function);
  const bool anew = effect == Effect::kAnew && work.to != work.from;
  add(offsetof(Step, to), work.to, anew ? Access::kWrite : Access::kUpdate);
  if (effect != Effect::kStore && effect != Effect::kAdd)
    add(offsetof(Step, from), work.from, Access::kRead);
  if (anew) launch.covers.push_back({work.to, 1});
  return launch;
}

constexpr uint32_t kLaunchesMin = 3;  // of fewer, no graph is made

struct Launches {
  size_t begin = 0, end = 0;
  uint32_t count = 0;
};

// The first launches of the run that are enough for a graph and follow each other on one stream; or
// the last ones, when none are enough.
Launches LaunchesOf(std::span<const std::byte> run) {
  Launches found;
  while (found.end < run.size()) {
    const ipc::MessageHeader header = ipc::HeaderAt(run, found.end);
    const bool is_launch = header.op == OpOf(Step::Kind::kLaunch);
    const size_t next = found.end + ipc::PaddedBytes(header.bytes);
    if (is_launch && (found.count == 0 || StepOfMessage(run, found.end).stream ==
                                              StepOfMessage(run, found.begin).stream)) {
      found = {found.begin, next, found.count + 1};
      continue;
    }
    if (found.count >= kLaunchesMin) break;
    found = is_launch ? Launches{found.end, next, 1} : Launches{next, next, 0};
  }
  return found;
}

}  // namespace

bool ProgramOrders::OnRepeat(const ipc::ChunkRepeat& repeat,
                             std::span<const ipc::ChunkPatch> patches,
                             std::span<const std::byte> run) {
  const bool takes_back = distrusts_ && Forget();
  distrusts_ = false;
  const Launches launches = LaunchesOf(run);
  const uint32_t place = repeat.offset + static_cast<uint32_t>(launches.begin);
  if (launches.count >= kLaunchesMin && !told_.contains(place) && dice_.OneIn(3))
    Prove(place, run.subspan(launches.begin, launches.end - launches.begin),
          static_cast<uint32_t>(launches.begin / 4), patches);
  return takes_back;
}

void ProgramOrders::Prove(uint32_t place, std::span<const std::byte> launches, uint32_t first_word,
                          std::span<const ipc::ChunkPatch> patches) {
  const uint32_t words = static_cast<uint32_t>(launches.size() / 4);
  order_ = Order{.place = place,
                 .messages = {launches.begin(), launches.end()},
                 .edges = {},
                 .read = std::vector<uint32_t>((words + 31) / 32),
                 .patches = {},
                 .renames = {}};
  for (const ipc::ChunkPatch& patch : patches) {
    if (patch.word >= first_word && patch.word < first_word + words)
      order_->patches.insert(order_->patches.end(), {patch.word - first_word, patch.value});
  }
  std::vector<replay::LaunchTouches> touches;
  for (size_t at = 0; at < launches.size();) {
    const Step step = StepOfMessage(launches, at);
    touches.push_back(TouchesOf(
        machine_.WorkOf(step, launches.subspan(at + sizeof(ipc::MessageHeader), sizeof step))));
    for (const size_t read : {offsetof(Step, stream), offsetof(Step, function), offsetof(Step, to),
                              offsetof(Step, to) + 4, offsetof(Step, from),
                              offsetof(Step, from) + 4, offsetof(Step, kind)}) {
      const size_t word = (at + sizeof(ipc::MessageHeader) + read) / 4;
      order_->read[word / 32] |= 1u << (word % 32);
    }
    at += ipc::PaddedBytes(ipc::HeaderAt(launches, at).bytes);
  }
  AddEdges(touches);
  told_.insert(place);
}

void ProgramOrders::AddEdges(const std::vector<replay::LaunchTouches>& launches) {
  const replay::Renaming renaming = replay::ChooseRenaming(launches, rename_bytes_left_);
  const std::optional<scheduler::streams::Dag> dag = replay::OrderWith(launches, renaming);
  for (int node = 0; node < dag->nodes(); ++node) {
    for (const int after : dag->Successors(node))
      order_->edges.insert(order_->edges.end(),
                           {static_cast<uint32_t>(node), static_cast<uint32_t>(after)});
  }
  for (const replay::Rename& rename : renaming.renames)
    order_->renames.insert(order_->renames.end(),
                           {rename.launch, rename.parameter, static_cast<uint32_t>(rename.place)});
  order_->rename_bytes = static_cast<uint32_t>(renaming.bytes);
  rename_bytes_left_ -= renaming.bytes;
}

}  // namespace worker

#include "daemon/worker/launch_runs.h"

#include <cstring>

#include "ipc/calls.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"

namespace worker {

bool LaunchRuns::IsStepUntrusted(uint16_t op) {
  return op == static_cast<uint16_t>(ipc::Op::Launch) || IsDeviceWriteUntrusted(op);
}

// The receiver has checked that these are whole messages.
std::span<const std::byte> LaunchRuns::StepsOf(uint32_t place,
                                               std::span<const std::byte> messages) const {
  const uint32_t context = ipc::HeaderAt(messages, 0).context;
  size_t at = 0;
  while (at < messages.size()) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const uint32_t here = place + static_cast<uint32_t>(at);
    if (!IsStepUntrusted(header.op) || header.context != context || alone_.contains(here)) break;
    if (at != 0 && orders_.Knows(here)) break;
    at += ipc::PaddedBytes(header.bytes);
  }
  return messages.first(at);
}

LaunchRuns::Replayed LaunchRuns::TryUntrusted(uint32_t place, std::span<const std::byte> messages,
                                              CUcontext context) {
  if (const LaunchOrders::Order* const order = orders_.Find(place, messages); order != nullptr) {
    const Replayed replayed =
        TryOrder(place, messages.first(order->messages.size()), *order, context);
    if (replayed.bytes != 0) return replayed;
  }
  if (place > singly_.begin && place < singly_.end) return {};
  singly_ = {};
  const std::span<const std::byte> steps = StepsOf(place, messages);
  if (steps.empty() || (runs_.size() >= kRunsMax && !runs_.contains(place))) return {};
  Run& run = runs_[place];
  size_t tried = steps.size();
  if (run.failures != kFailuresMax) {
    const bool as_before = run.piece != nullptr && run.messages.size() <= steps.size();
    if (as_before && DiffersMuch(steps, run)) {
      singly_ = {place, place + static_cast<uint32_t>(run.messages.size())};
      return {};
    }
    const bool ready = as_before ? Update(place, steps.first(run.messages.size()), &run)
                                 : Build(steps, nullptr, context, &run, &tried);
    if (as_before && ready) run.failures = 0;
    Replayed replayed;
    if (ready && Launch(&run, &replayed)) return replayed;
    run = Run{.failures = run.failures + 1};
  }
  singly_ = {place, place + static_cast<uint32_t>(tried)};
  return {};
}

LaunchRuns::Replayed LaunchRuns::TryOrder(uint32_t place, std::span<const std::byte> messages,
                                          const LaunchOrders::Order& order, CUcontext context) {
  if (ordered_.size() >= kRunsMax && !ordered_.contains(place)) return {};
  Run& run = ordered_[place];
  if (run.order != order.id) run = Run{.order = order.id};
  if (run.failures == kFailuresMax) return {};
  size_t tried = 0;
  const bool as_before = run.piece != nullptr;
  const bool ready =
      as_before ? Update(place, messages, &run) : Build(messages, &order, context, &run, &tried);
  Replayed replayed;
  if (ready && Launch(&run, &replayed)) {
    if (as_before) run.failures = 0;
    singly_ = {};
    return replayed;
  }
  run = Run{.order = order.id, .failures = run.failures + 1};
  return {};
}

// False: the session has the stream no more, or not all memory of fills and copies.
bool LaunchRuns::Launch(Run* run, Replayed* replayed) {
  if (!source_.AreBacked(&run->piece->touched()) || !source_.UseStream(run->stream)) return false;
  *replayed = {.bytes = run->messages.size(),
               .messages = run->steps,
               .launches = run->launches,
               .result = run->piece->Launch(run->stream)};
  return true;
}

bool LaunchRuns::MayReplayUntrusted(uint32_t place, std::span<const std::byte> messages) const {
  if (orders_.Find(place, messages) != nullptr) return true;
  const bool singly = place > singly_.begin && place < singly_.end;
  if (singly || StepsOf(place, messages).empty()) return false;
  const auto it = runs_.find(place);
  return it == runs_.end() || it->second.failures != kFailuresMax;
}

void LaunchRuns::GiveUp(uint32_t place) {
  runs_[place] = Run{.failures = kFailuresMax};
  if (const auto it = ordered_.find(place); it != ordered_.end())
    it->second = Run{.order = it->second.order, .failures = kFailuresMax};
}

bool LaunchRuns::Build(std::span<const std::byte> messages, const LaunchOrders::Order* order,
                       CUcontext context, Run* run, size_t* tried) {
  *run = Run{.order = run->order, .failures = run->failures};
  run->names_version = source_.names_version();
  run->piece = std::make_unique<GraphPiece>(driver_, context, &books_);
  if (!AddSteps(messages, run, tried)) return false;
  std::vector<uint32_t> edges;
  if (order != nullptr) {
    if (*tried != messages.size()) return false;
    edges = order->edges;
  } else {
    for (uint32_t next = 1; next < run->steps; ++next) edges.insert(edges.end(), {next - 1, next});
  }
  if (run->steps < kStepsMin) return false;
  if (!edges.empty() && run->piece->AddEdges(edges) != CUDA_SUCCESS) return false;
  if (run->piece->Seal() != CUDA_SUCCESS) return false;
  run->messages.assign(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(*tried));
  return true;
}

// The run ends where the stream changes: then events may lie between, which the messages order. It
// ends before a step that a graph can't express. False: that is the first one.
bool LaunchRuns::AddSteps(std::span<const std::byte> messages, Run* run, size_t* added) {
  for (size_t at = 0; at < messages.size();) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const size_t next = at + ipc::PaddedBytes(header.bytes);
    const std::optional<LaunchSource::Described> described =
        source_.DescribeStepUntrusted(messages.subspan(at, header.bytes));
    if (!described.has_value() || (at != 0 && described->stream != run->stream)) {
      *added = at == 0 ? next : at;
      return at != 0;
    }
    run->stream = described->stream;
    AddNode(*described, run);
    at = next;
  }
  *added = messages.size();
  return true;
}

// The piece tells of a failure when it is sealed.
void LaunchRuns::AddNode(const LaunchSource::Described& described, Run* run) {
  const unsigned number = run->steps++;
  if (described.write.has_value()) return described.write->AddTo(number, run->piece.get());
  const KernelNode node(described.launch);
  (void)run->piece->AddKernel(number, node.params(), false);
  ++run->launches;
}

bool LaunchRuns::DiffersMuch(std::span<const std::byte> messages, const Run& run) {
  uint32_t differing = 0;
  for (size_t at = 0; at < run.messages.size();) {
    const size_t bytes = ipc::PaddedBytes(ipc::HeaderAt(run.messages, at).bytes);
    if (std::memcmp(messages.data() + at, run.messages.data() + at, bytes) != 0) ++differing;
    at += bytes;
  }
  return differing > run.steps / 2;
}

// A name may stand for another object than the last time: then all steps are described anew.
bool LaunchRuns::Update(uint32_t place, std::span<const std::byte> messages, Run* run) {
  const bool same_names = run->names_version == source_.names_version();
  if (same_names && std::memcmp(messages.data(), run->messages.data(), messages.size()) == 0)
    return true;
  run->names_version = source_.names_version();
  size_t at = 0;
  for (uint32_t number = 0; number < run->steps; ++number) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const ipc::MessageHeader header_before = ipc::HeaderAt(run->messages, at);
    if (header.bytes != header_before.bytes || header.op != header_before.op) return false;
    const uint32_t here = place + static_cast<uint32_t>(at);
    const std::span<const std::byte> message = messages.subspan(at, header.bytes);
    std::byte* const before = run->messages.data() + at;
    at += ipc::PaddedBytes(header.bytes);
    const bool same = std::memcmp(message.data(), before, message.size()) == 0;
    if (same_names && same) continue;
    const std::optional<LaunchSource::Described> described = source_.DescribeStepUntrusted(message);
    if (!described.has_value()) return false;
    if (number == 0 && !same_names) run->stream = described->stream;
    if (described->stream != run->stream) return false;
    if (described->write.has_value()) {
      if (same) continue;
      if (alone_.size() < kRunsMax) alone_.insert(here);
      return false;
    }
    const KernelNode node(described->launch);
    if (run->piece->SetKernel(number, node.params()) != CUDA_SUCCESS) return false;
    std::memcpy(before, message.data(), message.size());
  }
  return true;
}

}  // namespace worker

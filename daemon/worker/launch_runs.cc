#include "daemon/worker/launch_runs.h"

#include <cstring>

#include "ipc/calls.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"

namespace worker {

// The receiver has checked that these are whole messages.
std::span<const std::byte> LaunchRuns::LaunchesOf(std::span<const std::byte> messages) {
  const uint32_t context = ipc::HeaderAt(messages, 0).context;
  size_t at = 0;
  while (at < messages.size()) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    if (header.op != static_cast<uint16_t>(ipc::Op::Launch) || header.context != context) break;
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
  const std::span<const std::byte> launches = LaunchesOf(messages);
  if (launches.empty() || (runs_.size() >= kRunsMax && !runs_.contains(place))) return {};
  const auto [it, is_new] = runs_.try_emplace(place);
  Run& run = it->second;
  size_t tried = launches.size();
  if (!is_new && run.failures != kFailuresMax) {
    const bool as_before = run.piece != nullptr && run.messages.size() <= launches.size();
    if (as_before && DiffersMuch(launches, run)) {
      singly_ = {place, place + static_cast<uint32_t>(run.messages.size())};
      return {};
    }
    const bool ready = as_before ? Update(launches.first(run.messages.size()), &run)
                                 : Build(launches, nullptr, context, &run, &tried);
    if (as_before && ready) run.failures = 0;
    if (ready && source_.UseStream(run.stream))
      return {run.messages.size(), run.launches, run.piece->Launch(run.stream)};
    run = Run{.failures = run.failures + 1};
  }
  singly_ = {place, place + static_cast<uint32_t>(tried)};
  return {};
}

// The client has seen the launches often enough, so a graph is built at once.
LaunchRuns::Replayed LaunchRuns::TryOrder(uint32_t place, std::span<const std::byte> messages,
                                          const LaunchOrders::Order& order, CUcontext context) {
  if (ordered_.size() >= kRunsMax && !ordered_.contains(place)) return {};
  Run& run = ordered_[place];
  if (run.order != order.id) run = Run{.order = order.id};
  if (run.failures == kFailuresMax) return {};
  size_t tried = 0;
  const bool as_before = run.piece != nullptr;
  const bool ready =
      as_before ? Update(messages, &run) : Build(messages, &order, context, &run, &tried);
  if (ready && source_.UseStream(run.stream)) {
    if (as_before) run.failures = 0;
    singly_ = {};
    return {messages.size(), run.launches, run.piece->Launch(run.stream)};
  }
  run = Run{.order = order.id, .failures = run.failures + 1};
  return {};
}

bool LaunchRuns::Has(uint32_t place) const {
  const auto is_graph = [place](const absl::flat_hash_map<uint32_t, Run>& runs) {
    const auto it = runs.find(place);
    return it != runs.end() && it->second.piece != nullptr;
  };
  return is_graph(runs_) || is_graph(ordered_);
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
  if (!AddLaunches(messages, run, tried)) return false;
  std::vector<uint32_t> edges;
  if (order != nullptr) {
    if (*tried != messages.size()) return false;
    edges = order->edges;
  } else {
    for (uint32_t next = 1; next < run->launches; ++next)
      edges.insert(edges.end(), {next - 1, next});
  }
  if (run->launches < kLaunchesMin) return false;
  if (!edges.empty() && run->piece->AddEdges(edges) != CUDA_SUCCESS) return false;
  if (run->piece->Seal() != CUDA_SUCCESS) return false;
  run->messages.assign(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(*tried));
  return true;
}

// The run ends where the stream changes: then events may lie between, which the messages order.
bool LaunchRuns::AddLaunches(std::span<const std::byte> messages, Run* run, size_t* added) {
  size_t at = 0;
  for (; at < messages.size(); at += ipc::PaddedBytes(ipc::HeaderAt(messages, at).bytes)) {
    const std::optional<LaunchSource::Described> described =
        source_.DescribeLaunchUntrusted(messages.subspan(at, ipc::HeaderAt(messages, at).bytes));
    if (!described.has_value()) return false;
    if (run->launches != 0 && described->stream != run->stream) break;
    run->stream = described->stream;
    const KernelNode node(described->launch);
    if (run->piece->AddKernel(run->launches, node.params(), false) != CUDA_SUCCESS) return false;
    ++run->launches;
  }
  *added = at;
  return true;
}

bool LaunchRuns::DiffersMuch(std::span<const std::byte> messages, const Run& run) {
  uint32_t differing = 0;
  for (size_t at = 0; at < run.messages.size();) {
    const size_t bytes = ipc::PaddedBytes(ipc::HeaderAt(run.messages, at).bytes);
    if (std::memcmp(messages.data() + at, run.messages.data() + at, bytes) != 0) ++differing;
    at += bytes;
  }
  return differing > run.launches / 2;
}

// A name may stand for another object than the last time: then all launches are described anew.
bool LaunchRuns::Update(std::span<const std::byte> messages, Run* run) {
  const bool same_names = run->names_version == source_.names_version();
  if (same_names && std::memcmp(messages.data(), run->messages.data(), messages.size()) == 0)
    return true;
  run->names_version = source_.names_version();
  size_t at = 0;
  for (uint32_t number = 0; number < run->launches; ++number) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    if (header.bytes != ipc::HeaderAt(run->messages, at).bytes) return false;
    const std::span<const std::byte> message = messages.subspan(at, header.bytes);
    std::byte* const before = run->messages.data() + at;
    at += ipc::PaddedBytes(header.bytes);
    if (same_names && std::memcmp(message.data(), before, message.size()) == 0) continue;
    const std::optional<LaunchSource::Described> described =
        source_.DescribeLaunchUntrusted(message);
    if (!described.has_value()) return false;
    if (number == 0 && !same_names) run->stream = described->stream;
    if (described->stream != run->stream) return false;
    const KernelNode node(described->launch);
    if (run->piece->SetKernel(number, node.params()) != CUDA_SUCCESS) return false;
    std::memcpy(before, message.data(), message.size());
  }
  return true;
}

void LaunchRuns::Clear() {
  runs_.clear();
  ordered_.clear();
}

}  // namespace worker

#include "cli/graph/program_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ipc/calls/limits.h"

namespace graph {
namespace {

void Unite(const std::vector<NodeId>& more, std::vector<NodeId>* nodes) {
  std::vector<NodeId> united;
  std::set_union(nodes->begin(), nodes->end(), more.begin(), more.end(),
                 std::back_inserter(united));
  *nodes = std::move(united);
}

}  // namespace

bool ProgramOrder::IsLegacy(uint32_t slot) { return slot < ipc::limits::kLegacySlots; }

ProgramOrder::Stream& ProgramOrder::Find(const SentCall& call) {
  const auto [found, is_new] = streams_.try_emplace(call.slot);
  Stream& stream = found->second;
  if (is_new) stream.last = joined_;
  stream.device = call.device;
  stream.keeps_order_with_legacy = call.keeps_order_with_legacy;
  return stream;
}

ProgramOrder::Nodes ProgramOrder::Before(const SentCall& call) {
  const Stream& own = Find(call);
  Nodes before = own.last;
  if (!own.keeps_order_with_legacy) return before;
  for (const auto& [slot, stream] : streams_) {
    if (stream.device != own.device || !stream.keeps_order_with_legacy) continue;
    if (IsLegacy(call.slot) || IsLegacy(slot)) Unite(stream.last, &before);
  }
  return before;
}

void ProgramOrder::AddEdges(const Nodes& from, NodeId to) {
  for (const NodeId node : from) edges_.push_back({node, to});
}

void ProgramOrder::AddWork(NodeId node, const SentCall& call, uint32_t thread) {
  AddEdges(Before(call), node);
  if (const auto wait = host_waits_.find(thread); wait != host_waits_.end())
    edges_.push_back({wait->second.node, node});
  Find(call).last = {node};
}

void ProgramOrder::RecordEvent(uint64_t event, const SentCall& call) {
  events_[event] = Before(call);
}

void ProgramOrder::WaitForEvent(uint64_t event, const SentCall& call) {
  if (const auto found = events_.find(event); found != events_.end())
    Unite(found->second, &Find(call).last);
}

void ProgramOrder::Join() {
  for (const auto& [slot, stream] : streams_) Unite(stream.last, &joined_);
  for (auto& [slot, stream] : streams_) stream.last = joined_;
}

ProgramOrder::Nodes ProgramOrder::LastOf(const HostWait& wait) const {
  if (wait.what == ipc::WaitedFor::kEvent) {
    const auto found = events_.find(wait.event);
    return found == events_.end() ? Nodes() : found->second;
  }
  Nodes last = joined_;
  for (const auto& [slot, stream] : streams_) {
    const bool waited =
        wait.what == ipc::WaitedFor::kDevice ? stream.device == wait.slot : slot == wait.slot;
    if (waited) Unite(stream.last, &last);
  }
  return last;
}

// The legacy stream is complete only when the streams in order with it are: they come first.
bool ProgramOrder::AddHostWait(NodeId node, const HostWait& wait, uint32_t thread) {
  Nodes last = LastOf(wait);
  if (wait.what == ipc::WaitedFor::kStream && IsLegacy(wait.slot)) {
    SentCall legacy;
    legacy.slot = wait.slot;
    legacy.device = wait.slot;
    legacy.keeps_order_with_legacy = true;
    Unite(Before(legacy), &last);
  }
  LastWait& own = host_waits_[thread];
  if (last.empty() || last == own.waited_for) {
    if (own.node == scheduler::streams::kNoNode) host_waits_.erase(thread);
    return false;
  }
  AddEdges(last, node);
  if (own.node != scheduler::streams::kNoNode) edges_.push_back({own.node, node});
  own = {node, std::move(last)};
  return true;
}

}  // namespace graph

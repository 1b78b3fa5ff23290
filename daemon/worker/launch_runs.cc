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
    const bool as_before = !run.pieces.empty() && run.messages.size() <= steps.size();
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
  const bool as_before = !run.pieces.empty();
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

// False: the session has a stream no more, or not all memory of fills and copies. A graph that
// fails is no reason to leave out the next one, as with single steps.
bool LaunchRuns::Launch(Run* run, Replayed* replayed) {
  for (StreamPiece& of : run->pieces) {
    if (!source_.AreBacked(&of.piece->touched()) || !source_.HasStream(of.stream)) return false;
  }
  *replayed = {.bytes = run->messages.size(),
               .messages = static_cast<uint32_t>(run->steps.size()),
               .launches = run->launches};
  for (StreamPiece& of : run->pieces) {
    source_.UseStream(of.stream);
    const CUresult result = of.piece->Launch(of.stream);
    if (replayed->result == CUDA_SUCCESS) replayed->result = result;
  }
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

// Where graphs of several streams are too small, one of the first stream may not be.
bool LaunchRuns::Build(std::span<const std::byte> messages, const LaunchOrders::Order* order,
                       CUcontext context, Run* run, size_t* tried) {
  for (const size_t streams_max : {kStreamsMax, size_t{1}}) {
    *run = Run{.order = run->order, .failures = run->failures};
    run->names_version = source_.names_version();
    if (order != nullptr && !PlaceRenames(*order, run)) return false;
    if (!AddSteps(messages, context, streams_max, run, tried)) return false;
    // The client proves orders of one stream, and a proof says nothing of a part of its launches.
    if (order != nullptr && (*tried != messages.size() || run->pieces.size() != 1)) return false;
    if (run->steps.size() < kStepsMin * run->pieces.size()) continue;
    run->messages.assign(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(*tried));
    return Seal(order, run);
  }
  return false;
}

// The memory stays where it is as long as the order does, so nodes keep these addresses.
bool LaunchRuns::PlaceRenames(const LaunchOrders::Order& order, Run* run) const {
  if (order.renames.empty()) return true;
  const CUdeviceptr scratch = orders_.TakeScratch();
  if (scratch == 0) return false;
  run->renames = order.renames;
  for (RenamedParameter& rename : run->renames) rename.address += scratch;
  return true;
}

// The client's proof holds for the renamed launches alone. So the worker never follows an order
// without its renames.
std::optional<LaunchSource::Described> LaunchRuns::DescribeUntrusted(
    std::span<const std::byte> message, size_t step, const Run& run, RenamedArguments* arguments) {
  std::optional<LaunchSource::Described> described = source_.DescribeStepUntrusted(message);
  if (described.has_value() && !arguments->SetUntrusted(run.renames, step, &described->launch))
    described.reset();
  return described;
}

// The run ends before a step that a graph can't express. False: that is the first one.
bool LaunchRuns::AddSteps(std::span<const std::byte> messages, CUcontext context,
                          size_t streams_max, Run* run, size_t* added) {
  for (size_t at = 0; at < messages.size();) {
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const size_t next = at + ipc::PaddedBytes(header.bytes);
    RenamedArguments arguments;
    const std::optional<LaunchSource::Described> described =
        DescribeUntrusted(messages.subspan(at, header.bytes), run->steps.size(), *run, &arguments);
    StreamPiece* const piece =
        described.has_value() ? PieceFor(described->stream, context, streams_max, run) : nullptr;
    if (piece == nullptr) {
      *added = at == 0 ? next : at;
      return at != 0;
    }
    run->steps.push_back({static_cast<uint32_t>(piece - run->pieces.data()), piece->nodes});
    run->launches += described->write.has_value() ? 0 : 1;
    AddNode(*described, piece);
    at = next;
  }
  *added = messages.size();
  return true;
}

// The legacy stream's work comes between the work of others before and after, so it ends a run of
// theirs.
LaunchRuns::StreamPiece* LaunchRuns::PieceFor(CUstream stream, CUcontext context,
                                              size_t streams_max, Run* run) {
  for (StreamPiece& of : run->pieces) {
    if (of.stream == stream) return &of;
  }
  if (run->pieces.size() == streams_max) return nullptr;
  for (const StreamPiece& of : run->pieces) {
    if (source_.AreOrdered(of.stream, stream)) return nullptr;
  }
  run->pieces.push_back({stream, std::make_unique<GraphPiece>(driver_, context, &books_)});
  return &run->pieces.back();
}

// The piece tells of a failure when it is sealed.
void LaunchRuns::AddNode(const LaunchSource::Described& described, StreamPiece* piece) {
  const unsigned number = piece->nodes++;
  if (described.write.has_value()) return described.write->AddTo(number, piece->piece.get());
  const KernelNode node(described.launch);
  (void)piece->piece->AddKernel(number, node.params(), false);
}

// Without an order the nodes of a stream are a chain.
bool LaunchRuns::Seal(const LaunchOrders::Order* order, Run* run) {
  for (StreamPiece& of : run->pieces) {
    std::vector<uint32_t> edges;
    if (order != nullptr) edges = order->edges;
    for (uint32_t next = 1; order == nullptr && next < of.nodes; ++next)
      edges.insert(edges.end(), {next - 1, next});
    if (!edges.empty() && of.piece->AddEdges(edges) != CUDA_SUCCESS) return false;
    if (of.piece->Seal() != CUDA_SUCCESS) return false;
  }
  return true;
}

bool LaunchRuns::DiffersMuch(std::span<const std::byte> messages, const Run& run) {
  uint32_t differing = 0;
  for (size_t at = 0; at < run.messages.size();) {
    const size_t bytes = ipc::PaddedBytes(ipc::HeaderAt(run.messages, at).bytes);
    if (std::memcmp(messages.data() + at, run.messages.data() + at, bytes) != 0) ++differing;
    at += bytes;
  }
  return differing > run.steps.size() / 2;
}

// A name may stand for another object than the last time: then all steps are described anew, and
// streams that are others may be ordered otherwise.
bool LaunchRuns::Update(uint32_t place, std::span<const std::byte> messages, Run* run) {
  const bool same_names = run->names_version == source_.names_version();
  if (same_names && std::memcmp(messages.data(), run->messages.data(), messages.size()) == 0)
    return true;
  if (!same_names && run->pieces.size() != 1) return false;
  run->names_version = source_.names_version();
  size_t at = 0;
  for (size_t number = 0; number < run->steps.size(); ++number) {
    const Step& step = run->steps[number];
    StreamPiece& piece = run->pieces[step.piece];
    const ipc::MessageHeader header = ipc::HeaderAt(messages, at);
    const ipc::MessageHeader header_before = ipc::HeaderAt(run->messages, at);
    if (header.bytes != header_before.bytes || header.op != header_before.op) return false;
    const uint32_t here = place + static_cast<uint32_t>(at);
    const std::span<const std::byte> message = messages.subspan(at, header.bytes);
    std::byte* const before = run->messages.data() + at;
    at += ipc::PaddedBytes(header.bytes);
    const bool same = std::memcmp(message.data(), before, message.size()) == 0;
    if (same_names && same) continue;
    RenamedArguments arguments;
    const std::optional<LaunchSource::Described> described =
        DescribeUntrusted(message, number, *run, &arguments);
    if (!described.has_value()) return false;
    if (step.node == 0 && !same_names) piece.stream = described->stream;
    if (described->stream != piece.stream) return false;
    // Graphs set no new fill or copy: at the next repeat the run ends before this one.
    if (described->write.has_value()) {
      if (same) continue;
      if (alone_.size() < kRunsMax) alone_.insert(here);
      return false;
    }
    const KernelNode node(described->launch);
    if (piece.piece->SetKernel(step.node, node.params()) != CUDA_SUCCESS) return false;
    std::memcpy(before, message.data(), message.size());
  }
  return true;
}

}  // namespace worker

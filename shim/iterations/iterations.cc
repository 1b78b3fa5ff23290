#include "shim/iterations/iterations.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ipc/environment.h"

namespace shim::iterations {
namespace {

From FromEnvironment() {
  const char* const text = std::getenv(ipc::kIterationsVariable);
  if (text == nullptr) return From::kAuto;
  if (std::strcmp(text, "nvtx") == 0) return From::kNvtx;
  if (std::strcmp(text, "header") == 0) return From::kHeader;
  return std::strcmp(text, "none") == 0 ? From::kNone : From::kAuto;
}

}  // namespace

Iterations& Iterations::Process() {
  static Iterations* const iterations =
      new Iterations(FromEnvironment(), std::getenv("LANEWAY_RECORD_OPS"));
  return *iterations;
}

Iterations::Iterations(From from, const char* record_file)
    : from_(from),
      recorder_(Recorder::Open(record_file)),
      detects_(from == From::kAuto && recorder_ == nullptr) {}

void Iterations::NoteAllocated(uint64_t bytes) {
  const uint64_t live = live_bytes_.load(std::memory_order_relaxed) + bytes;
  live_bytes_.store(live, std::memory_order_relaxed);
  uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void Iterations::NoteFreed(uint64_t bytes) {
  live_bytes_.store(live_bytes_.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
}

void Iterations::Mark(ipc::BoundarySource source) {
  marked_.store(1 + static_cast<uint32_t>(source), std::memory_order_relaxed);
}

std::vector<Op> Iterations::LastIteration() const {
  const Detector::Stretch& last = detector_.last();
  const History& history = detector_.history();
  std::vector<Op> ops;
  for (uint64_t i = last.begin; i < last.end && last.begin >= history.first(); ++i)
    ops.push_back({.identity = history.identity(i), .shape = history.shape(i)});
  return ops;
}

bool Iterations::Decide(const Op& op, ipc::BoundaryInfo* info) {
  if (from_ == From::kNone && recorder_ == nullptr) return false;
  const uint32_t mark = marked_.exchange(0, std::memory_order_relaxed);
  const bool marked = mark != 0;
  if (recorder_ != nullptr) recorder_->Add(op, marked);
  const ipc::BoundarySource source =
      marked ? static_cast<ipc::BoundarySource>(mark - 1) : ipc::BoundarySource::kDetector;
  if (marked && source == ipc::BoundarySource::kHeader) {
    told_ = true;
    detects_ = false;
  }
  if (from_ == From::kAuto && !told_) {
    const Decision decision = detector_.Next(op);
    recognised_.store(detector_.locked(), std::memory_order_relaxed);
    info->body = decision.body;
    info->source = ipc::BoundarySource::kDetector;
    return decision.boundary && End(info);
  }
  const bool boundary =
      marked &&
      (source == ipc::BoundarySource::kNvtx ? from_ == From::kNvtx : from_ != From::kNvtx) &&
      from_ != From::kNone;
  detector_.Note(op, boundary);
  if (!boundary) return false;
  info->body = 0;
  info->source = source;
  recognised_.store(true, std::memory_order_relaxed);
  return End(info);
}

bool Iterations::End(ipc::BoundaryInfo* info) {
  const uint64_t live = live_bytes_.load(std::memory_order_relaxed);
  info->iteration = ordinal_.fetch_add(1, std::memory_order_relaxed) + 1;
  info->persistent_bytes = live;
  info->ephemeral_bytes =
      std::max(peak_bytes_.exchange(live, std::memory_order_relaxed), live) - live;
  if (const Hook hook = hook_.load(std::memory_order_acquire); hook != nullptr) hook(*info);
  return true;
}

}  // namespace shim::iterations

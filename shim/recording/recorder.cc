#include "shim/recording/recorder.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/body_layout.h"
#include "functions/function_file.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"
#include "ipc/environment.h"
#include "ipc/message.h"
#include "ipc/state_dir.h"
#include "shim/client.h"
#include "shim/recording/snapshot.h"

namespace shim::recording {
namespace {

using functions::RecordedCall;
using functions::StepKind;
using ipc::Op;

thread_local bool own_calls = false;

// What a call means for a function.
enum class Part : uint8_t {
  kNone,      // nothing: memory, waits, events; all steps of a function run in one order
  kStep,      // it is made again
  kUpload,    // from memory of the host that only the program sees
  kReadBack,  // to such memory
  kCopy,      // between memory that both sides see
  kObstacle,  // no function can do it
};

Part PartOfOwn(Op op) {
  switch (op) {
    case Op::Launch:
    case Op::GraphLaunch:
    case Op::GraphSetKernel:
      return Part::kStep;
    case Op::CopyInline:
    case Op::CopyStagedIn:
      return Part::kUpload;
    case Op::CopyStagedOut:
      return Part::kReadBack;
    case Op::CopyDevice:
      return Part::kCopy;
    case Op::CopyPitched:
    case Op::CopyPitchedStagedIn:
    case Op::CopyPitchedStagedOut:
    case Op::HostCall:
    case Op::LoadModule:
    case Op::UnloadModule:
    case Op::ContextReset:
    // Their memory and their numbers are the worker's, and a function's file has no room for it.
    case Op::ArrayCreate:
    case Op::ArrayDestroy:
    case Op::MipmapCreate:
    case Op::MipmapDestroy:
    case Op::TextureOfArray:
    case Op::TextureOfMipmap:
    case Op::TextureOfMemory:
    case Op::SurfaceOfArray:
    case Op::CopyArray:
    case Op::CopyArrayStaged:
    case Op::CopyArrays:
      return Part::kObstacle;
    default:
      return Part::kNone;
  }
}

bool Returns(const ipc::Row& row) {
  for (const ipc::Param& param : row.params) {
    if (param.role.kind == ipc::RoleKind::kResult) return true;
  }
  return false;
}

// A result that the host reads decides what the program does next, and a function has no program.
Part PartOfLibrary(Op op, bool works) {
  if (op == Op::cublasSetStream_v2 || op == Op::cublasSetWorkspace_v2) return Part::kNone;
  const ipc::Row& row = ipc::RowOf(op);
  const bool makes = row.sets.names != 0;
  if (!works && !makes && row.name.find("Set") == std::string_view::npos) return Part::kNone;
  return makes || Returns(row) ? Part::kObstacle : Part::kStep;
}

Part PartOf(Op op, bool works) {
  switch (ipc::LibraryOf(op)) {
    case ipc::Library::kLaneway:
      return PartOfOwn(op);
    case ipc::Library::kCublas:
    case ipc::Library::kCublasLt:
      return PartOfLibrary(op, works);
    case ipc::Library::kDriver:
      break;
  }
  const std::string_view name = ipc::RowOf(op).name;
  if (name.starts_with("cuMemset") || name.starts_with("cuMemcpyDtoD")) return Part::kStep;
  if (name.starts_with("cuFuncSet")) return Part::kStep;
  return works ? Part::kObstacle : Part::kNone;
}

template <class T>
T ValueAt(ipc::Values values, size_t index) {
  T value;
  std::memcpy(&value, values[index], sizeof value);
  return value;
}

bool IsPinned(uint64_t address) {
  const uint64_t offset = address - Client::Process().arena_base();
  return offset >= ipc::limits::kDeviceArenaBytes && offset < ipc::limits::kSlotBytes;
}

std::span<const std::byte> HostBytes(uint64_t address, size_t bytes) {
  return {reinterpret_cast<const std::byte*>(address), bytes};
}

// What tells calls of different iterations apart, without their arguments.
uint64_t TokenOf(const SentCall& call) {
  uint64_t token = static_cast<uint64_t>(call.op) << 32 | call.message.size();
  if (call.operation != nullptr)
    token ^= uint64_t{call.operation->identity} << 24 ^ call.operation->shape;
  return token;
}

}  // namespace

Recorder* Recorder::Process() {
  static Recorder* const recorder = [] {
    const char* const file = std::getenv(ipc::kRecordVariable);
    return file == nullptr || *file == 0 ? nullptr : new Recorder(file);
  }();
  return recorder;
}

bool Recorder::IsOwnCall() { return own_calls; }

Recorder::Recorder(std::string file) : file_(std::move(file)) {
  const base::MutexLock lock(&mutex_);
  Say("it has no iterations that repeat");
}

// --- calls ---------------------------------------------------------------------------------------

void Recorder::OnSent(const SentCall& call) {
  if (own_calls) return;
  const Part part = PartOf(call.op, call.operation != nullptr);
  // Marks, waits and the like vary in number with the machine's load.
  if (part == Part::kNone && !call.boundary) return;
  const base::MutexLock lock(&mutex_);
  watch_.OnCall(TokenOf(call), call.boundary);
  if (call.boundary) BeginIteration();
  if (phase_ == Phase::kSnapshotting || phase_ == Phase::kProbing)
    Abandon("other threads, or work after the last wait, belong to its iterations");
  Keep(call);
}

// The iteration before was sampled if nothing stood in the way until its last call.
void Recorder::BeginIteration() {
  if (phase_ == Phase::kProbing) phase_ = Phase::kSampling;
  if (phase_ == Phase::kSampling && !current_.calls.empty())
    recording_.iterations.push_back(std::move(current_));
  if (phase_ == Phase::kSampling && !watch_.IsExpected()) Abandon("its iterations differ");
  if (phase_ == Phase::kRecorded && watch_.shape() != recorded_shape_) phase_ = Phase::kWatching;
  current_ = {};
  pinned_.clear();
  obstacle_.clear();
  uploads_ = downloads_ = false;
  arriving_ = 0;
  continued_ = Op::kDriverEnd;
}

void Recorder::Keep(const SentCall& call) {
  const Op before = std::exchange(continued_, call.op);
  switch (PartOf(call.op, call.operation != nullptr)) {
    case Part::kNone:
      continued_ = before;
      return;
    case Part::kStep: {
      if (phase_ != Phase::kSampling) return;
      RecordedCall kept;
      kept.call.op = static_cast<uint16_t>(call.op);
      kept.call.body.assign(call.message.begin() + sizeof(ipc::MessageHeader), call.message.end());
      functions::ClearMarks(call.op, kept.call.body);
      current_.calls.push_back(std::move(kept));
      return;
    }
    case Part::kUpload: {
      const uint64_t source = ValueAt<uint64_t>(call.values, 1);
      const std::byte* const from = call.op == Op::CopyInline
                                        ? reinterpret_cast<const std::byte*>(source)
                                        : Client::Process().file().staging() + source;
      const size_t bytes = ValueAt<size_t>(call.values, 2);
      return KeepUpload(before, ValueAt<uint64_t>(call.values, 0), {from, bytes});
    }
    case Part::kReadBack:
      return KeepDownload(before, ValueAt<uint64_t>(call.values, 1), 0,
                          ValueAt<size_t>(call.values, 2));
    case Part::kCopy:
      return KeepCopy(call);
    case Part::kObstacle:
      obstacle_ = absl::StrCat("its iterations call ", std::string(ipc::RowOf(call.op).name));
      return;
  }
}

// Long copies come in pieces; the pieces are one input.
void Recorder::KeepUpload(Op before, uint64_t address, std::span<const std::byte> content) {
  uploads_ = true;
  if (phase_ != Phase::kSampling) return;
  RecordedCall* const last = current_.calls.empty() ? nullptr : &current_.calls.back();
  const bool continues = continued_ == Op::CopyStagedIn && before == continued_ &&
                         last != nullptr && last->kind == StepKind::kUpload &&
                         last->address + last->content.size() == address;
  if (continues) {
    last->content.insert(last->content.end(), content.begin(), content.end());
    return;
  }
  RecordedCall kept;
  kept.kind = StepKind::kUpload;
  kept.address = address;
  kept.content.assign(content.begin(), content.end());
  current_.calls.push_back(std::move(kept));
}

// `pinned`: where the bytes come; 0: pageable memory, of which OnReadBack tells.
void Recorder::KeepDownload(Op before, uint64_t address, uint64_t pinned, size_t bytes) {
  downloads_ = true;
  const bool continues = pinned == 0 && before == Op::CopyStagedOut && arriving_ != 0;
  if (pinned == 0 && !continues) ++arriving_;
  if (phase_ != Phase::kSampling) return;
  if (continues) {
    current_.calls.back().content.resize(current_.calls.back().content.size() + bytes);
    return;
  }
  RecordedCall kept;
  kept.kind = StepKind::kDownload;
  kept.address = address;
  kept.content.resize(bytes);
  if (pinned != 0) pinned_.push_back({current_.calls.size(), pinned});
  current_.calls.push_back(std::move(kept));
}

void Recorder::KeepCopy(const SentCall& call) {
  const uint64_t to = ValueAt<uint64_t>(call.values, 0);
  const uint64_t from = ValueAt<uint64_t>(call.values, 1);
  const size_t bytes = ValueAt<size_t>(call.values, 2);
  if (IsPinned(to) && IsPinned(from)) {
    obstacle_ = "its iterations copy from pinned memory to pinned memory";
  } else if (IsPinned(from)) {
    KeepUpload(Op::kDriverEnd, to, HostBytes(from, bytes));
  } else if (IsPinned(to)) {
    KeepDownload(Op::kDriverEnd, from, to, bytes);
  } else if (phase_ == Phase::kSampling) {
    RecordedCall kept;
    kept.call.op = static_cast<uint16_t>(call.op);
    kept.call.body.assign(call.message.begin() + sizeof(ipc::MessageHeader), call.message.end());
    functions::ClearMarks(call.op, kept.call.body);
    current_.calls.push_back(std::move(kept));
  }
}

// Memory that lives for an iteration alone has no content to copy, but an address.
void Recorder::OnAllocated(uint64_t base, uint64_t bytes) {
  if (own_calls) return;
  const base::MutexLock lock(&mutex_);
  // An allocation before the first call of an iteration belongs to the iteration.
  const bool first = phase_ == Phase::kSampling && recording_.iterations.empty();
  if (first || phase_ == Phase::kProbing) recording_.allocated.push_back({base, bytes});
}

// --- waits ---------------------------------------------------------------------------------------

void Recorder::OnWaited() {
  if (own_calls) return;
  {
    const base::MutexLock lock(&mutex_);
    for (const Pinned& output : pinned_) {
      functions::Bytes& content = current_.calls[output.call].content;
      std::memcpy(content.data(), HostBytes(output.address, content.size()).data(), content.size());
    }
  }
  Settle();
}

void Recorder::OnReadBack(std::span<const std::byte> bytes) {
  if (own_calls) return;
  {
    const base::MutexLock lock(&mutex_);
    if (arriving_ != 0) --arriving_;
    if (phase_ == Phase::kSampling && !current_.calls.empty()) {
      RecordedCall& last = current_.calls.back();
      if (last.kind == StepKind::kDownload && last.content.size() == bytes.size())
        last.content.assign(bytes.begin(), bytes.end());
      continued_ = Op::kDriverEnd;
    }
  }
  Settle();
}

bool Recorder::IsIterationOver() const { return watch_.IsOver() && arriving_ == 0; }

// The device rests: what is due at the end of an iteration is done.
void Recorder::Settle() {
  {
    const base::MutexLock lock(&mutex_);
    if (!IsIterationOver()) return;
    if (phase_ == Phase::kSampling && recording_.iterations.size() + 1 >= kSamples) {
      recording_.iterations.push_back(std::move(current_));
      current_ = {};
      pinned_.clear();
      return Finish();
    }
    if (phase_ != Phase::kWatching || snapshots_ >= kSnapshotsMax) return;
    if (!obstacle_.empty()) return Say(obstacle_);
    if (!uploads_ || !downloads_) {
      return Say(uploads_ ? "no iteration that repeats reads an output back"
                          : "no iteration that repeats uploads an input");
    }
    phase_ = Phase::kSnapshotting;
    ++snapshots_;
  }
  TakeSnapshot();
}

// Without the recorder's lock: the copies are calls of this thread, and OnSent takes the lock for
// the calls of other threads, which spoil the snapshot.
void Recorder::TakeSnapshot() {
  functions::Recording taken;
  std::string why;
  own_calls = true;
  const bool fine = recording::TakeSnapshot(&taken, &why);
  own_calls = false;
  const base::MutexLock lock(&mutex_);
  if (phase_ != Phase::kSnapshotting) return;
  if (!fine) return Abandon(why);
  recording_ = std::move(taken);
  phase_ = Phase::kProbing;
}

void Recorder::Finish() {
  functions::Function function;
  std::string why;
  const bool made = functions::MakeFunction(std::move(recording_), &function, &why);
  recording_ = {};
  if (!made) return Abandon(why);
  const functions::Bytes bytes = functions::EncodeFunction(function);
  const absl::Status written =
      ipc::WriteWhole(file_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!written.ok()) return Abandon(std::string(written.message()));
  phase_ = Phase::kRecorded;
  snapshots_ = 0;
  recorded_shape_ = watch_.shape();
}

// Another loop, or a later round of this one, may still be recorded.
void Recorder::Abandon(const std::string& why) {
  phase_ = Phase::kWatching;
  recording_ = {};
  current_ = {};
  pinned_.clear();
  Say(why);
}

void Recorder::Say(const std::string& why) {
  if (std::exchange(said_, why) != why) (void)ipc::WriteWhole(file_ + ".why", why).ok();
}

}  // namespace shim::recording

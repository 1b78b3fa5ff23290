#include "shim/recording/snapshot.h"

#include <cstring>
#include <map>
#include <utility>

#include "functions/body_layout.h"
#include "ipc/calls/limits.h"
#include "ipc/message.h"
#include "ipc/module_hash.h"
#include "shim/client.h"
#include "shim/copy.h"
#include "shim/modules.h"
#include "shim/streams.h"

namespace shim::recording {
namespace {

using functions::Block;
using functions::Bytes;
using functions::Recording;
using ipc::Op;

// Entries of the log that a function needs. It has one stream, no events, and memory of its own.
bool MakesWhatStepsUse(Op op) {
  switch (ipc::LibraryOf(op)) {
    case ipc::Library::kDriver:
      return op == Op::cuFuncSetAttribute || op == Op::cuFuncSetCacheConfig ||
             op == Op::cuFuncSetSharedMemConfig;
    case ipc::Library::kCublas:
      return op != Op::cublasSetStream_v2 && op != Op::cublasSetWorkspace_v2;
    case ipc::Library::kCublasLt:
      return true;
    case ipc::Library::kLaneway:
      return op == Op::LoadModule || op == Op::GetFunction || op == Op::GetGlobal ||
             ipc::RowOf(op).name.starts_with("Graph");
  }
  return false;
}

bool Fail(std::string* why, const char* sentence) {
  *why = sentence;
  return false;
}

// Into a block; its address and size are known.
bool CopyOut(Block* block) {
  Stream* stream = nullptr;
  if (Streams::Process().UseCurrent(CU_STREAM_LEGACY, &stream) != CUDA_SUCCESS) return false;
  block->content.resize(block->bytes);
  const uint64_t to = reinterpret_cast<uint64_t>(block->content.data());
  return CopyLinear({to, block->base, block->bytes, true}, *stream) == CUDA_SUCCESS;
}

bool AddMemory(Recording* recording, std::string* why) {
  if (State::Process().arrays.live() != 0 || !State::Process().textures.empty())
    return Fail(why, "it has arrays or textures");
  uint64_t all_bytes = 0;
  for (const Allocation& one : State::Process().allocations.All()) {
    if (one.kind == Allocation::Kind::kMapped) return Fail(why, "it maps memory itself");
    if (one.kind != Allocation::Kind::kDevice && one.kind != Allocation::Kind::kGraph) continue;
    if (one.device != 0) return Fail(why, "it has memory on several devices");
    all_bytes += one.bytes;
    if (all_bytes > ipc::limits::kFunctionMemoryBytesMax)
      return Fail(why, "it has too much device memory");
    Block block;
    block.base = one.base;
    block.bytes = one.bytes;
    if (!CopyOut(&block)) return Fail(why, "its device memory cannot be copied");
    recording->blocks.push_back(std::move(block));
  }
  return true;
}

// The variable whose address a GetGlobal of the log has told.
bool AddVariable(const functions::Call& call, uint32_t number, Recording* recording,
                 std::string* why) {
  const std::vector<functions::BodyField> fields = functions::FixedFieldsOf(Op::GetGlobal);
  uint32_t id = 0;
  std::memcpy(&id, call.body.data() + fields[2].offset, sizeof id);
  const size_t end = fields[3].offset + fields[3].bytes;
  const char* const name = reinterpret_cast<const char*>(call.body.data() + ipc::PaddedBytes(end));
  const uint64_t module = State::Process().modules.ValueOf(static_cast<ipc::HandleId>(id));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (Modules::FindVariable(module, name, &address, &bytes) != CUDA_SUCCESS)
    return Fail(why, "a variable of a module is gone");
  Block block;
  block.base = address;
  block.bytes = bytes;
  block.variable = number;
  if (!CopyOut(&block)) return Fail(why, "a variable of a module cannot be copied");
  recording->blocks.push_back(std::move(block));
  return true;
}

bool AddEntry(const RebuildLog::Entry& entry, std::map<std::array<uint64_t, 4>, bool>* known,
              Recording* recording, std::string* why) {
  if (!MakesWhatStepsUse(entry.op)) return true;
  const ipc::MessageHeader header = ipc::HeaderAt(entry.message);
  if ((header.context & ipc::kIntoCapture) != 0)
    return Fail(why, "it launches a graph with calls of cuBLAS in it");
  functions::Call call;
  call.op = static_cast<uint16_t>(entry.op);
  call.body.assign(entry.message.begin() + sizeof header, entry.message.end());
  recording->setup.push_back(call);
  if (entry.op == Op::GetGlobal)
    return AddVariable(call, static_cast<uint32_t>(recording->setup.size()), recording, why);
  if (entry.op != Op::LoadModule) return true;
  if (entry.image == nullptr) return Fail(why, "the bytes of a module are gone");
  const ipc::ModuleHash hash = ipc::HashOfModule(*entry.image);
  functions::Image image;
  std::memcpy(image.hash.data(), hash.word, sizeof hash.word);
  if (!known->insert({image.hash, true}).second) return true;
  image.bytes = *entry.image;
  recording->images.push_back(std::move(image));
  return true;
}

}  // namespace

bool TakeSnapshot(Recording* recording, std::string* why) {
  const RebuildLog* const log = Client::Process().log();
  if (log == nullptr) return Fail(why, "functions are recorded with --transport=ring alone");
  if (log->overflowed()) return Fail(why, "it makes too many objects");
  std::map<std::array<uint64_t, 4>, bool> known;
  for (const RebuildLog::Entry& entry : log->At(UINT64_MAX - 1)) {
    if (!AddEntry(entry, &known, recording, why)) return false;
  }
  return AddMemory(recording, why);
}

}  // namespace shim::recording

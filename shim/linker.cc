#include "shim/linker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ipc/module_hash.h"
#include "shim/image.h"
#include "shim/rebuild/images.h"
#include "shim/send.h"

namespace shim {
namespace {

constexpr size_t kInputsMax = 400;  // they travel in one message
}  // namespace

HandleTable<Link, ipc::HandleKind::kLinker>& Link::Table() {
  static HandleTable<Link, ipc::HandleKind::kLinker>* const table =
      new HandleTable<Link, ipc::HandleKind::kLinker>;
  return *table;
}

void Link::Begin(const Context& context, JitOptions options) {
  wire_ = context.wire;
  options_ = std::move(options);
}

CUresult Link::Add(CUjitInputType kind, std::string_view bytes, const char* name,
                   const JitOptions& options) {
  if (inputs_.size() == kInputsMax) return CUDA_ERROR_OPERATING_SYSTEM;
  if (bytes.empty() || bytes.size() > ipc::limits::kModuleBytesMax) return CUDA_ERROR_INVALID_VALUE;
  Input input;
  const std::byte* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  input.bytes.assign(begin, begin + bytes.size());
  input.wire.hash = ipc::HashOfModule(input.bytes);
  input.wire.kind = static_cast<uint32_t>(kind);
  const std::string_view called(name != nullptr ? name : "");
  std::memcpy(input.wire.name, called.data(), std::min(called.size(), sizeof input.wire.name - 1));
  inputs_.push_back(std::move(input));
  // The driver takes options for each input; here they hold for the whole link.
  options_.options.insert(options_.options.end(), options.options.begin(), options.options.end());
  options_.values.insert(options_.values.end(), options.values.begin(), options.values.end());
  return CUDA_SUCCESS;
}

// What one worker was sent its successor has not.
CUresult Link::Complete(void** image, size_t* bytes) {
  if (inputs_.empty()) return CUDA_ERROR_INVALID_VALUE;
  CUresult result;
  uint32_t generation;
  do {
    generation = Client::Process().pipeline().generation();
    result = LinkOnce();
  } while (result == CUDA_ERROR_INVALID_IMAGE &&
           generation != Client::Process().pipeline().generation());
  if (result != CUDA_SUCCESS) return result;
  *image = image_.data();
  if (bytes != nullptr) *bytes = image_.size();
  return CUDA_SUCCESS;
}

CUresult Link::LinkOnce() {
  std::vector<ipc::LinkInput> wires;
  for (const Input& input : inputs_) {
    const CUresult sent = Modules::Send(wire_, input.wire.hash, input.bytes);
    if (sent != CUDA_SUCCESS) return sent;
    wires.push_back(input.wire);
  }
  ipc::ModuleHash linked;
  uint64_t bytes = 0;
  const CUresult result = Call<ipc::Op::LinkImages>(
      wire_, wires.data(), static_cast<unsigned>(wires.size()), options_.options.data(),
      options_.values.data(), static_cast<unsigned>(options_.options.size()), &linked, &bytes,
      options_.info_log, options_.info_log_bytes, options_.error_log, options_.error_log_bytes);
  options_.TellFilled();
  return result == CUDA_SUCCESS ? Fetch(linked, bytes) : result;
}

CUresult Link::Fetch(const ipc::ModuleHash& hash, uint64_t bytes) {
  if (bytes > ipc::limits::kModuleBytesMax) return CUDA_ERROR_INVALID_IMAGE;
  image_.resize(bytes);
  for (size_t at = 0; at < bytes; at += kImagePieceBytes) {
    const size_t piece = std::min(kImagePieceBytes, bytes - at);
    const CUresult result = Call<ipc::Op::ImageBytes>(
        wire_, &hash, uint64_t{at}, static_cast<void*>(image_.data() + at), piece);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace shim

// Linking at run time.
#include "shim/linker.h"

#include <cstring>
#include <string>

#include "shim/client.h"
#include "shim/driver/local.h"
#include "shim/driver/module_file.h"

namespace local {
namespace {

using shim::Context;
using shim::JitOptions;
using shim::Link;
using shim::Modules;
using shim::State;

uint64_t Bits(CUlinkState state) { return reinterpret_cast<uint64_t>(state); }

CUresult FindLink(CUlinkState state, Link** link) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  *link = Link::Table().Find(Bits(state));
  return *link != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  Context* context = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions read;
  if (const CUresult result = Modules::ReadOptions(count, options, values, &read);
      result != CUDA_SUCCESS) {
    return result;
  }
  uint64_t value = 0;
  Link* const link = Link::Table().Create(&value);
  if (link == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  link->Begin(*context, std::move(read));
  *state = reinterpret_cast<CUlinkState>(value);
  return CUDA_SUCCESS;
}
CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return local::cuLinkCreate_v2(count, options, values, state);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType kind, void* data, size_t bytes,
                          const char* name, unsigned count, CUjit_option* options, void** values) {
  Link* link = nullptr;
  if (const CUresult result = FindLink(state, &link); result != CUDA_SUCCESS) return result;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions read;
  if (const CUresult result = Modules::ReadOptions(count, options, values, &read);
      result != CUDA_SUCCESS) {
    return result;
  }
  return link->Add(kind, {static_cast<const char*>(data), bytes}, name, read);
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType kind, void* data, size_t bytes,
                       const char* name, unsigned count, CUjit_option* options, void** values) {
  return local::cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType kind, const char* path, unsigned count,
                          CUjit_option* options, void** values) {
  Link* link = nullptr;
  if (const CUresult result = FindLink(state, &link); result != CUDA_SUCCESS) return result;
  std::string bytes;
  if (const CUresult result = shim::ReadModuleFile(path, &bytes); result != CUDA_SUCCESS)
    return result;
  return local::cuLinkAddData_v2(state, kind, bytes.data(), bytes.size(), path, count, options,
                                 values);
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType kind, const char* path, unsigned count,
                       CUjit_option* options, void** values) {
  return local::cuLinkAddFile_v2(state, kind, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  Link* link = nullptr;
  if (const CUresult result = FindLink(state, &link); result != CUDA_SUCCESS) return result;
  return image != nullptr ? link->Complete(image, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLinkDestroy(CUlinkState state) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  return Link::Table().Destroy(Bits(state)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace local

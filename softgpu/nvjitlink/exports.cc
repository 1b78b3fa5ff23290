// Exports nvJitLink's functions: each under its own name, which a program looks up, and under the
// names that the headers of CUDA 13's releases make of it, to which a program is linked.
#include <nvJitLink.h>

#include <cstring>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/vendor_library.h"
#include "softgpu/driver/version.h"
#include "softgpu/nvjitlink/link.h"

namespace softgpu::nvjitlink {
namespace {

// A program may pass any pointer as a handle.
struct Links {
  base::Mutex mutex;
  std::map<nvJitLinkHandle, std::shared_ptr<Link>> of GUARDED_BY(mutex);
};

Links& All() {
  static Links* const all = new Links;  // never destroyed: used to the end
  return *all;
}

std::shared_ptr<Link> Find(nvJitLinkHandle handle) {
  const base::MutexLock lock(&All().mutex);
  const auto found = All().of.find(handle);
  return found == All().of.end() ? nullptr : found->second;
}

// The size of a result, or the result itself, of a link that has one.
template <class Of>
nvJitLinkResult Size(nvJitLinkHandle handle, size_t* size, Of of) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link == nullptr || size == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = of(*link).size();
  return NVJITLINK_SUCCESS;
}

template <class Of>
nvJitLinkResult Copy(nvJitLinkHandle handle, void* to, Of of) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link == nullptr || to == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  const std::string& from = of(*link);
  std::memcpy(to, from.data(), from.size());
  return NVJITLINK_SUCCESS;
}

const std::string& CubinOf(const Link& link) { return link.cubin(); }
const std::string& PtxOf(const Link& link) { return link.ptx(); }
// With its zero; a log without a word is of size 0.
std::string LogOf(const Link& link) {
  return link.error_log().empty() ? "" : link.error_log() + '\0';
}

}  // namespace
}  // namespace softgpu::nvjitlink

LANEWAY_STAND_IN;

// clang-format off
#define ALSO(name, release) \
  __attribute__((alias("nvJitLink" #name), visibility("default"))) \
  decltype(__nvJitLink##name##_13_0) __nvJitLink##name##_13_##release;
#define EXPORT(name) \
  ALSO(name, 0) ALSO(name, 1) ALSO(name, 2) ALSO(name, 3) ALSO(name, 4) \
  ALSO(name, 5) ALSO(name, 6) ALSO(name, 7) ALSO(name, 8) ALSO(name, 9) \
  __attribute__((visibility("default")))
// clang-format on

using softgpu::nvjitlink::All;
using softgpu::nvjitlink::Find;
using softgpu::nvjitlink::Link;

extern "C" {

EXPORT(Create)
nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle* handle, uint32_t count, const char* const* words) {
  if (handle == nullptr || (count != 0 && words == nullptr)) return NVJITLINK_ERROR_INVALID_INPUT;
  softgpu::nvjitlink::Options options;
  const nvJitLinkResult parsed = softgpu::nvjitlink::ParseOptions({words, words + count}, &options);
  if (parsed != NVJITLINK_SUCCESS) return parsed;
  const std::shared_ptr<Link> link = std::make_shared<Link>(std::move(options));
  *handle = reinterpret_cast<nvJitLinkHandle>(link.get());
  const base::MutexLock lock(&All().mutex);
  All().of[*handle] = link;
  return NVJITLINK_SUCCESS;
}

EXPORT(Destroy)
nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle* handle) {
  if (handle == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  const base::MutexLock lock(&All().mutex);
  if (All().of.erase(*handle) == 0) return NVJITLINK_ERROR_INVALID_INPUT;
  *handle = nullptr;
  return NVJITLINK_SUCCESS;
}

EXPORT(AddData)
nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType type, const void* data,
                                 size_t size, const char* name) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link == nullptr || data == nullptr || size == 0) return NVJITLINK_ERROR_INVALID_INPUT;
  std::string_view bytes(static_cast<const char*>(data), size);
  while (type == NVJITLINK_INPUT_PTX && !bytes.empty() && bytes.back() == '\0')
    bytes.remove_suffix(1);
  return link->Add(type, bytes, name == nullptr ? "input" : name);
}

EXPORT(AddFile)
nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType type,
                                 const char* path) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link == nullptr || path == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  return link->AddFile(type, path);
}

EXPORT(Complete)
nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle) {
  const std::shared_ptr<Link> link = Find(handle);
  return link == nullptr ? NVJITLINK_ERROR_INVALID_INPUT : link->Complete();
}

EXPORT(GetLinkedCubinSize)
nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t* size) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link != nullptr && link->options().ptx) return NVJITLINK_ERROR_INTERNAL;
  return softgpu::nvjitlink::Size(handle, size, softgpu::nvjitlink::CubinOf);
}

EXPORT(GetLinkedCubin)
nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void* cubin) {
  return softgpu::nvjitlink::Copy(handle, cubin, softgpu::nvjitlink::CubinOf);
}

EXPORT(GetLinkedPtxSize)
nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t* size) {
  const std::shared_ptr<Link> link = Find(handle);
  if (link != nullptr && !link->options().ptx) return NVJITLINK_ERROR_INVALID_INPUT;
  return softgpu::nvjitlink::Size(handle, size, softgpu::nvjitlink::PtxOf);
}

EXPORT(GetLinkedPtx)
nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char* ptx) {
  return softgpu::nvjitlink::Copy(handle, ptx, softgpu::nvjitlink::PtxOf);
}

EXPORT(GetErrorLogSize)
nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t* size) {
  return softgpu::nvjitlink::Size(handle, size, softgpu::nvjitlink::LogOf);
}

EXPORT(GetErrorLog)
nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char* log) {
  return softgpu::nvjitlink::Copy(handle, log, softgpu::nvjitlink::LogOf);
}

// Nothing is said but of errors.
EXPORT(GetInfoLogSize)
nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t* size) {
  if (Find(handle) == nullptr || size == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = 0;
  return NVJITLINK_SUCCESS;
}

EXPORT(GetInfoLog)
nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle handle, char* log) {
  return Find(handle) == nullptr || log == nullptr ? NVJITLINK_ERROR_INVALID_INPUT
                                                   : NVJITLINK_SUCCESS;
}

__attribute__((visibility("default"))) nvJitLinkResult nvJitLinkVersion(unsigned* major,
                                                                        unsigned* minor) {
  if (major == nullptr || minor == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *major = softgpu::kDriverVersion / 1000;
  *minor = softgpu::kDriverVersion % 1000 / 10;
  return NVJITLINK_SUCCESS;
}

}  // extern "C"

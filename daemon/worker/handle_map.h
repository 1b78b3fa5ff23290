// The objects of one session by kind and client-given name: name -> driver handle, in plain arrays.
// Names are small numbers that the client re-uses (ipc/handles.h), so the arrays stay short.
// Thread safety: one session's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/handles.h"

namespace worker {

class HandleMap {
 public:
  // Null when there is none of that name.
  void* Find(ipc::HandleKind kind, ipc::HandleId id) const {
    const std::vector<void*>& handles = Of(kind);
    const size_t index = static_cast<size_t>(id);
    return index < handles.size() ? handles[index] : nullptr;
  }
  bool MayName(ipc::HandleKind kind, ipc::HandleId id) const {
    return ipc::IsClientName(id) && static_cast<uint32_t>(id) < ipc::NamesEnd(kind) &&
           Find(kind, id) == nullptr;
  }
  void Bind(ipc::HandleKind kind, ipc::HandleId id, void* handle) {
    std::vector<void*>& handles = handles_[static_cast<size_t>(kind)];
    const size_t index = static_cast<size_t>(id);
    if (index >= handles.size()) handles.resize(index + 1, nullptr);
    handles[index] = handle;
    Changed(kind);
  }
  void Release(ipc::HandleKind kind, ipc::HandleId id) {
    std::vector<void*>& handles = handles_[static_cast<size_t>(kind)];
    const size_t index = static_cast<size_t>(id);
    if (index < handles.size()) handles[index] = nullptr;
    Changed(kind);
  }
  // Frees the names of all objects of the kind for which gone(handle) is true.
  template <class Gone>
  void ReleaseIf(ipc::HandleKind kind, Gone gone) {
    Changed(kind);
    for (void*& handle : handles_[static_cast<size_t>(kind)]) {
      if (handle != nullptr && gone(handle)) handle = nullptr;
    }
  }
  // Calls destroy(handle) for every object of the kind and forgets them.
  template <class Destroy>
  void Drain(ipc::HandleKind kind, Destroy destroy) {
    std::vector<void*>& handles = handles_[static_cast<size_t>(kind)];
    for (void* handle : handles) {
      if (handle != nullptr) destroy(handle);
    }
    handles.clear();
    Changed(kind);
  }
  // Grows whenever a stream or a function gets or loses its name: what a launch names.
  uint64_t version() const { return version_; }

 private:
  void Changed(ipc::HandleKind kind) {
    version_ += kind == ipc::HandleKind::kStream || kind == ipc::HandleKind::kFunction;
  }
  const std::vector<void*>& Of(ipc::HandleKind kind) const {
    return handles_[static_cast<size_t>(kind)];
  }
  std::array<std::vector<void*>, static_cast<size_t>(ipc::HandleKind::kCount)> handles_;
  uint64_t version_ = 0;
};

}  // namespace worker

// Links of a program (cuLink*): inputs are kept here and linked by the worker's driver in one step,
// so a link in progress outlives a worker. What an input has wrong is therefore told by Complete,
// as CUDA allows. Thread safety: a link belongs to one thread at a time, as in CUDA; the table is
// anybody's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shim/modules.h"
#include "shim/state.h"

namespace shim {

class Link {
 public:
  static HandleTable<Link, ipc::HandleKind::kLinker>& Table();

  // The program's log buffers live as long as the link.
  void Begin(const Context& context, JitOptions options);
  // 304 beyond what one link takes.
  CUresult Add(CUjitInputType kind, std::string_view bytes, const char* name,
               const JitOptions& options);
  // The image lives as long as the link.
  CUresult Complete(void** image, size_t* bytes);

 private:
  struct Input {
    std::vector<std::byte> bytes;
    ipc::LinkInput wire;
  };

  CUresult LinkOnce();
  CUresult Fetch(const ipc::ModuleHash& hash, uint64_t bytes);

  uint32_t wire_ = 0;
  JitOptions options_;
  std::vector<Input> inputs_;
  std::vector<std::byte> image_;
};

}  // namespace shim

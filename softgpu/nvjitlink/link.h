// One link of nvJitLink: PTX and containers of PTX are joined by the driver's linker, LTO-IR is
// compiled to PTX by the vendor's library first, and the "machine code" handed out is a container
// of PTX that module loading accepts.
//
// Source: NVIDIA's nvJitLink documentation. Thread safety: none; a link belongs to one thread at a
// time.
#pragma once

#include <nvJitLink.h>

#include <string>
#include <string_view>
#include <vector>

#include "softgpu/driver/linker.h"
#include "softgpu/nvjitlink/vendor.h"

namespace softgpu::nvjitlink {

// What the options of nvJitLinkCreate ask for; most of them shape machine code, which is never
// made.
struct Options {
  std::vector<std::string> words;
  bool lto = false;
  bool ptx = false;  // hand out PTX in place of machine code
};

// MISSING_ARCH, UNRECOGNIZED_ARCH, UNRECOGNIZED_OPTION, or INVALID_INPUT for -ptx without -lto.
nvJitLinkResult ParseOptions(std::vector<std::string> words, Options* options);

class Link {
 public:
  explicit Link(Options options);

  nvJitLinkResult Add(nvJitLinkInputType type, std::string_view bytes, std::string_view name);
  nvJitLinkResult AddFile(nvJitLinkInputType type, const std::string& path);
  nvJitLinkResult Complete();

  const Options& options() const { return options_; }
  const std::string& cubin() const { return cubin_; }  // empty before Complete()
  const std::string& ptx() const { return ptx_; }      // of -ptx, with its zero
  const std::string& error_log() const { return error_log_; }

 private:
  nvJitLinkResult AddToLinker(std::string_view bytes, std::string_view name);
  nvJitLinkResult Fail(nvJitLinkResult result, const std::string& sentence);

  const Options options_;
  Linker linker_;
  bool adds_to_linker_ = false;  // something was
  std::vector<LtoInput> lto_inputs_;
  std::string cubin_, ptx_;
  std::string error_log_;
};

}  // namespace softgpu::nvjitlink

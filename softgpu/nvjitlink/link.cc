#include "softgpu/nvjitlink/link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "softgpu/driver/fatbin.h"
#include "softgpu/tools/tool.h"

namespace softgpu::nvjitlink {
namespace {

constexpr std::string_view kArchiveMagic = "!<arch>\n", kElfMagic =
                                                            "\x7f"
                                                            "ELF";

// Options with a value after "="; those without one; see nvJitLink.h.
constexpr std::array<std::string_view, 13> kValued = {"-maxrregcount",
                                                      "-ftz",
                                                      "-prec-div",
                                                      "-prec-sqrt",
                                                      "-fma",
                                                      "-kernels-used",
                                                      "-variables-used",
                                                      "-Xptxas",
                                                      "-Xnvvm",
                                                      "-split-compile",
                                                      "-split-compile-extended",
                                                      "-jump-table-density",
                                                      "-arch"};
constexpr std::array<std::string_view, 10> kPlain = {"-time",     "-verbose",
                                                     "-v",        "-g",
                                                     "-lineinfo", "-optimize-unused-variables",
                                                     "-no-cache", "-device-stack-protector",
                                                     "-lto",      "-ptx"};

bool IsKnown(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals != std::string_view::npos)
    return std::ranges::find(kValued, word.substr(0, equals)) != kValued.end();
  return std::ranges::find(kPlain, word) != kPlain.end() || word == "-O0" || word == "-O3";
}

bool IsContainer(std::string_view bytes) {
  uint32_t magic = 0;
  if (bytes.size() < kFatbinHeaderBytes) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kFatbinMagic;
}

// Compilers' own containers hold LTO-IR, or machine code, where ours hold PTX.
bool HoldsPtx(std::string_view container) {
  std::vector<FatbinEntry> entries;
  std::string error;
  return ParseFatbinUntrusted(std::as_bytes(std::span(container)), &entries, &error) &&
         NewestPtx(entries) != nullptr;
}

}  // namespace

nvJitLinkResult ParseOptions(std::vector<std::string> words, Options* options) {
  constexpr std::string_view kArchitecture = "-arch=";
  std::optional<std::string> architecture;
  for (const std::string& word : words) {
    if (!IsKnown(word)) return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
    if (word.starts_with(kArchitecture)) architecture = word.substr(kArchitecture.size());
    options->lto |= word == "-lto";
    options->ptx |= word == "-ptx";
  }
  if (!architecture.has_value()) return NVJITLINK_ERROR_MISSING_ARCH;
  if (!tools::ArchitectureOf(*architecture).has_value()) return NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
  if (options->ptx && !options->lto) return NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS;
  options->words = std::move(words);
  return NVJITLINK_SUCCESS;
}

Link::Link(Options options)
    : options_(std::move(options)), linker_(JitOptions(0, nullptr, nullptr)) {}

nvJitLinkResult Link::Fail(nvJitLinkResult result, const std::string& sentence) {
  error_log_ += "ERROR: " + sentence + "\n";
  return result;
}

nvJitLinkResult Link::AddToLinker(std::string_view bytes, std::string_view name) {
  const CUjitInputType type = IsContainer(bytes)                 ? CU_JIT_INPUT_FATBINARY
                              : bytes.starts_with(kElfMagic)     ? CU_JIT_INPUT_OBJECT
                              : bytes.starts_with(kArchiveMagic) ? CU_JIT_INPUT_LIBRARY
                                                                 : CU_JIT_INPUT_PTX;
  const CUresult added = linker_.Add(type, bytes, name);
  if (added == CUDA_SUCCESS) {
    adds_to_linker_ = true;
    return NVJITLINK_SUCCESS;
  }
  const bool is_text = type == CU_JIT_INPUT_PTX;
  return Fail(is_text ? NVJITLINK_ERROR_PTX_COMPILE : NVJITLINK_ERROR_UNRECOGNIZED_INPUT,
              std::string(name) + ": " + tools::LastSentence());
}

// Machine code can't be told from what stands for it by the type that the program names.
nvJitLinkResult Link::Add(nvJitLinkInputType type, std::string_view bytes, std::string_view name) {
  const bool is_lto =
      type == NVJITLINK_INPUT_LTOIR ||
      (options_.lto && type != NVJITLINK_INPUT_PTX && type != NVJITLINK_INPUT_CUBIN &&
       !bytes.starts_with(kArchiveMagic) && !(IsContainer(bytes) && HoldsPtx(bytes)));
  if (!is_lto) return AddToLinker(bytes, name);
  if (!options_.lto)
    return Fail(NVJITLINK_ERROR_LTO_NOT_ENABLED, "LTO-IR input cannot be used without -lto");
  lto_inputs_.push_back({type, std::string(bytes), std::string(name)});
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult Link::AddFile(nvJitLinkInputType type, const std::string& path) {
  const std::optional<std::string> bytes = tools::ReadFile(path);
  if (!bytes.has_value())
    return Fail(NVJITLINK_ERROR_INVALID_INPUT, "could not open input file '" + path + "'");
  return Add(type, *bytes, path);
}

nvJitLinkResult Link::Complete() {
  if (!lto_inputs_.empty()) {
    std::string error;
    const std::optional<std::string> ptx = CompileLto(lto_inputs_, options_.words, &error);
    if (!ptx.has_value()) return Fail(NVJITLINK_ERROR_NVVM_COMPILE, error);
    if (options_.ptx) {
      if (adds_to_linker_)
        return Fail(NVJITLINK_ERROR_FINALIZE, "-ptx requires that all inputs have LTOIR");
      ptx_ = *ptx + '\0';
      return NVJITLINK_SUCCESS;
    }
    const nvJitLinkResult added = AddToLinker(*ptx, "LTO-IR");
    if (added != NVJITLINK_SUCCESS) return added;
  }
  void* image = nullptr;
  size_t bytes = 0;
  if (linker_.Complete(&image, &bytes) != CUDA_SUCCESS)
    return Fail(NVJITLINK_ERROR_FINALIZE, tools::LastSentence());
  cubin_.assign(static_cast<const char*>(image), bytes);
  return NVJITLINK_SUCCESS;
}

}  // namespace softgpu::nvjitlink

#include "softgpu/driver/image.h"

#include <elf.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <vector>

#include "base/find.h"
#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/fatbin.h"

namespace softgpu {
namespace {

constexpr uint64_t kElfBytesMax = ipc::limits::kModuleBytesMax;

bool IsElf(std::string_view bytes) { return bytes.starts_with(ELFMAG); }

// The end of an ELF object's section headers, which compilers put last.
uint64_t ElfBytesUntrusted(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  const uint64_t bytes = header.e_shoff + uint64_t{header.e_shentsize} * header.e_shnum;
  return bytes >= sizeof header && bytes <= kElfBytesMax ? bytes : sizeof header;
}

// Names of the kernels in a cubin: each has its own section .text.NAME.
std::vector<std::string> KernelNamesUntrusted(std::string_view elf) {
  std::vector<std::string> names;
  Elf64_Ehdr header;
  if (elf.size() < sizeof header) return names;
  std::memcpy(&header, elf.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const uint64_t table_bytes = sections.size() * sizeof(Elf64_Shdr);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > elf.size() ||
      table_bytes > elf.size() - header.e_shoff || header.e_shstrndx >= sections.size()) {
    return names;
  }
  std::memcpy(sections.data(), elf.data() + header.e_shoff, table_bytes);
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  if (strings.sh_offset > elf.size() || strings.sh_size > elf.size() - strings.sh_offset)
    return names;
  const std::string_view table = elf.substr(strings.sh_offset, strings.sh_size);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= table.size()) continue;
    const std::string_view name =
        table.substr(section.sh_name, table.find('\0', section.sh_name) - section.sh_name);
    if (name.starts_with(".text.")) names.emplace_back(name.substr(6));
  }
  return names;
}

CUresult RefuseMachineCode(const std::vector<std::string>& kernels, const JitOptions& options) {
  static std::atomic<bool> said{false};
  std::string which = kernels.empty() ? "this module" : "kernel " + kernels.front();
  if (kernels.size() > 1) which += " and " + std::to_string(kernels.size() - 1) + " more";
  const std::string sentence =
      which +
      ": only machine code is there, and the software GPU executes PTX; with PyTorch, wrap the "
      "step in torch.compile, whose PTX the ptxas in lib/laneway/softgpu/bin passes on; what nvcc "
      "builds takes -gencode arch=compute_XX,code=compute_XX";
  options.WriteErrorLog(sentence);
  return options.HasErrorLog() ? Fail(CUDA_ERROR_NO_BINARY_FOR_GPU, sentence)
                               : FailAloud(CUDA_ERROR_NO_BINARY_FOR_GPU, sentence, &said);
}

// The newest PTX of a fat binary; without any, the kernels that its machine code holds are named.
CUresult ExtractFromFatbinUntrusted(std::string_view container, const JitOptions& options,
                                    std::string* ptx) {
  std::vector<FatbinEntry> entries;
  std::string error;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(container.data()),
                                         container.size());
  if (!ParseFatbinUntrusted(bytes, &entries, &error)) return Fail(CUDA_ERROR_INVALID_IMAGE, error);
  const FatbinEntry* const newest = NewestPtx(entries);
  std::vector<std::string> kernels;
  for (const FatbinEntry& entry : entries) {
    std::string elf;
    if (entry.kind == FatbinKind::kElf && ExpandUntrusted(entry, &elf, &error) && kernels.empty())
      kernels = KernelNamesUntrusted(elf);
  }
  if (newest == nullptr) return RefuseMachineCode(kernels, options);
  if (!ExpandUntrusted(*newest, ptx, &error)) return Fail(CUDA_ERROR_INVALID_IMAGE, error);
  ptx->resize(std::min(ptx->size(), ptx->find('\0')));
  return CUDA_SUCCESS;
}

struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* unused;
};

// Parsed modules in use, by text: a library is parsed once, however many contexts load it.
class ParsedModules {
 public:
  static ParsedModules& Get() {
    static ParsedModules* const modules = new ParsedModules;
    return *modules;
  }
  std::shared_ptr<const PtxModule> Find(const std::string& text) {
    base::MutexLock lock(&mutex_);
    return base::FindOr(modules_, text, {}).lock();
  }
  void Add(const std::string& text, const std::shared_ptr<const PtxModule>& module) {
    base::MutexLock lock(&mutex_);
    std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
    modules_[text] = module;
  }

 private:
  base::Mutex mutex_;
  std::map<std::string, std::weak_ptr<const PtxModule>> modules_ GUARDED_BY(mutex_);
};

}  // namespace

CUresult ExtractPtxUntrusted(const void* image, const JitOptions& options, std::string* ptx) {
  if (image == nullptr) return Fail(CUDA_ERROR_INVALID_VALUE, "the image is null");
  uint32_t magic = 0;
  std::memcpy(&magic, image, 1);
  // Text may be shorter than a magic number; containers and objects are not.
  if (magic != (kFatbinWrapperMagic & 0xff) && magic != (kFatbinMagic & 0xff) && magic != ELFMAG0) {
    return ExtractPtxUntrusted(std::string_view(static_cast<const char*>(image)), options, ptx);
  }
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kFatbinWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    if (wrapper.data == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    image = wrapper.data;
    std::memcpy(&magic, image, sizeof magic);
  }
  const char* const bytes = static_cast<const char*>(image);
  if (magic == kFatbinMagic) {
    return ExtractFromFatbinUntrusted({bytes, FatbinBytesUntrusted(image)}, options, ptx);
  }
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    return RefuseMachineCode(KernelNamesUntrusted({bytes, ElfBytesUntrusted(image)}), options);
  }
  return ExtractPtxUntrusted(std::string_view(bytes), options, ptx);
}

CUresult ExtractPtxUntrusted(std::string_view image, const JitOptions& options, std::string* ptx) {
  uint32_t magic = 0;
  if (image.size() >= sizeof magic) std::memcpy(&magic, image.data(), sizeof magic);
  if (magic == kFatbinMagic) return ExtractFromFatbinUntrusted(image, options, ptx);
  if (IsElf(image)) return RefuseMachineCode(KernelNamesUntrusted(image), options);
  *ptx = image.substr(0, image.find('\0'));
  if (ptx->find(".version") == std::string::npos) {
    return Fail(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX text nor a fat binary");
  }
  return CUDA_SUCCESS;
}

CUresult ParsePtx(std::string_view ptx, const JitOptions& options,
                  std::shared_ptr<const PtxModule>* module) {
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const std::string text(ptx);
  std::string log;
  *module = ParsedModules::Get().Find(text);
  if (*module == nullptr) {
    *module = PtxModule::Parse(text, &log);
    if (*module == nullptr) {
      options.WriteErrorLog(log);
      return Fail(CUDA_ERROR_INVALID_PTX, log.substr(0, log.find('\n')));
    }
    ParsedModules::Get().Add(text, *module);
  }
  options.WriteErrorLog("");
  options.WriteInfoLog(log);
  const std::chrono::duration<float, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
  options.WriteWallTime(elapsed.count());
  return CUDA_SUCCESS;
}

CUresult LoadImage(const void* image, const JitOptions& options,
                   std::shared_ptr<const PtxModule>* module) {
  std::string ptx;
  const CUresult extracted = ExtractPtxUntrusted(image, options, &ptx);
  return extracted == CUDA_SUCCESS ? ParsePtx(ptx, options, module) : extracted;
}

CUresult LoadImageFile(const char* path, const JitOptions& options,
                       std::shared_ptr<const PtxModule>* module) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(CUDA_ERROR_FILE_NOT_FOUND, std::string("can't read ") + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string ptx;
  const CUresult extracted = ExtractPtxUntrusted(std::string_view(bytes), options, &ptx);
  return extracted == CUDA_SUCCESS ? ParsePtx(ptx, options, module) : extracted;
}

}  // namespace softgpu

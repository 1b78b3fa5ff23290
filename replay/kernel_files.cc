#include "replay/kernel_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "softgpu/driver/fatbin.h"

namespace replay {
namespace {

constexpr size_t kFileBytesMax = size_t{2} << 30;
constexpr size_t kAlignment = 8;  // of a fat binary within a program

void AddText(std::string_view text, KernelFile* file) {
  std::string log;
  std::shared_ptr<const softgpu::PtxModule> module = softgpu::PtxModule::Parse(text, &log);
  if (module != nullptr) {
    file->modules.push_back(std::move(module));
  } else {
    file->refused.push_back(log.substr(0, log.find('\n')));
  }
}

// One text for each container: of several architectures the newest, as the driver takes it.
void AddContainer(std::span<const std::byte> container, KernelFile* file) {
  std::vector<softgpu::FatbinEntry> entries;
  std::string error;
  if (!softgpu::ParseFatbinUntrusted(container, &entries, &error)) {
    file->refused.push_back(error);
    return;
  }
  const softgpu::FatbinEntry* const newest = softgpu::NewestPtx(entries);
  if (newest == nullptr) {
    file->machine_code += entries.empty() ? 0 : 1;
    return;
  }
  std::string text;
  if (!softgpu::ExpandUntrusted(*newest, &text, &error)) {
    file->refused.push_back(error);
    return;
  }
  AddText(text.substr(0, text.find('\0')), file);
}

// Containers begin with a number that programs hardly hold by chance, and know their size.
void AddContainers(std::string_view bytes, KernelFile* file) {
  const std::byte* const data = reinterpret_cast<const std::byte*>(bytes.data());
  for (size_t at = 0; at + softgpu::kFatbinHeaderBytes <= bytes.size(); at += kAlignment) {
    uint32_t magic;
    std::memcpy(&magic, data + at, sizeof magic);
    if (magic != softgpu::kFatbinMagic) continue;
    const uint64_t size = softgpu::FatbinBytesUntrusted(data + at);
    if (size == 0 || size > bytes.size() - at) continue;
    AddContainer({data + at, static_cast<size_t>(size)}, file);
    at += static_cast<size_t>(size - 1) / kAlignment * kAlignment;
  }
}

void AddAll(std::string_view bytes, KernelFile* file) {
  const bool text = bytes.find('\0') == std::string_view::npos;
  if (text && bytes.find(".version") != std::string_view::npos) {
    AddText(bytes, file);
  } else {
    AddContainers(bytes, file);
  }
}

bool IsEmpty(const KernelFile& file) {
  return file.modules.empty() && file.machine_code == 0 && file.refused.empty();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  const std::streamoff size = in.tellg();
  if (size < 0 || static_cast<size_t>(size) > kFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file of at most 2 GiB"));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  in.seekg(0);
  if (!in.read(bytes.data(), size)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " can't be read as a file"));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<KernelFile> ReadKernelFileUntrusted(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  KernelFile file;
  AddAll(*bytes, &file);
  if (IsEmpty(file)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " holds no kernels: neither PTX text nor a fat binary (as nvcc makes them)"));
  }
  return file;
}

// PTX text ends with a zero as a program gives it.
KernelFile ReadKernelImagesUntrusted(std::span<const std::byte> image) {
  std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
  if (const size_t end = bytes.find('\0'); end != std::string_view::npos && end + 1 >= bytes.size())
    bytes = bytes.substr(0, end);
  KernelFile file;
  AddAll(bytes, &file);
  if (IsEmpty(file)) file.machine_code = 1;
  return file;
}

}  // namespace replay

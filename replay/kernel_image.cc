#include "replay/kernel_image.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "softgpu/driver/fatbin.h"

namespace replay {
namespace {

constexpr size_t kTextBytesMax = 8u << 20;  // a longer one takes seconds to parse

bool IsContainer(std::span<const std::byte> image) {
  uint32_t magic = 0;
  if (image.size() < softgpu::kFatbinHeaderBytes) return false;
  std::memcpy(&magic, image.data(), sizeof magic);
  return magic == softgpu::kFatbinMagic;
}

// The text that the driver would compile; empty: there is none that stands for what runs.
std::string TextOfContainerUntrusted(std::span<const std::byte> container) {
  std::vector<softgpu::FatbinEntry> entries;
  std::string text, error;
  if (!softgpu::ParseFatbinUntrusted(container, &entries, &error)) return {};
  const softgpu::FatbinEntry* const newest = softgpu::NewestPtx(entries);
  if (newest == nullptr ||
      std::max<uint64_t>(newest->uncompressed_bytes, newest->payload.size()) > kTextBytesMax)
    return {};
  const auto differs = [newest](const softgpu::FatbinEntry& entry) {
    return entry.kind == softgpu::FatbinKind::kElf && entry.architecture != newest->architecture;
  };
  if (std::any_of(entries.begin(), entries.end(), differs)) return {};
  return softgpu::ExpandUntrusted(*newest, &text, &error) ? text : std::string();
}

}  // namespace

std::shared_ptr<const softgpu::PtxModule> ReadKernelImageUntrusted(
    std::span<const std::byte> image) {
  if (!IsContainer(image) && image.size() > kTextBytesMax) return nullptr;
  std::string text = IsContainer(image)
                         ? TextOfContainerUntrusted(image)
                         : std::string(reinterpret_cast<const char*>(image.data()), image.size());
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.find(".version") == std::string::npos) return nullptr;
  std::string log;
  return softgpu::PtxModule::Parse(text, &log);
}

}  // namespace replay

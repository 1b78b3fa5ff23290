// Fat binaries: containers of any bytes are listed and expanded, or refused with a sentence.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "softgpu/driver/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (size >= softgpu::kFatbinHeaderBytes) softgpu::FatbinBytesUntrusted(data);
  std::vector<softgpu::FatbinEntry> entries;
  std::string error;
  if (!softgpu::ParseFatbinUntrusted(bytes, &entries, &error)) return 0;
  for (const softgpu::FatbinEntry& entry : entries) {
    std::string expanded;
    softgpu::ExpandUntrusted(entry, &expanded, &error);
  }
  return 0;
}

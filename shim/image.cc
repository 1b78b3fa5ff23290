#include "shim/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "ipc/calls/limits.h"

namespace shim {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kContainerMagic = 0xba55ed50;
constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint64_t kBytesMax = ipc::limits::kModuleBytesMax;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* container;
};

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t entry_bytes;
};

std::span<const std::byte> Bytes(const void* image, uint64_t bytes) {
  if (bytes == 0 || bytes > kBytesMax) return {};
  return {static_cast<const std::byte*>(image), static_cast<size_t>(bytes)};
}

std::span<const std::byte> Container(const void* image) {
  ContainerHeader header;
  std::memcpy(&header, image, sizeof header);
  if (header.magic != kContainerMagic || header.entry_bytes > kBytesMax) return {};
  return Bytes(image, header.header_bytes + header.entry_bytes);
}

// The file's end is where its last table or section ends.
std::span<const std::byte> Elf(const void* image) {
  const char* const base = static_cast<const char*>(image);
  Elf64_Ehdr header;
  std::memcpy(&header, base, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) return {};
  if (header.e_shoff > kBytesMax || header.e_phoff > kBytesMax) return {};
  uint64_t end = std::max<uint64_t>(header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
                                    header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, base + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > kBytesMax || section.sh_size > kBytesMax) return {};
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  return Bytes(image, end);
}

}  // namespace

std::span<const std::byte> FindImage(const void* image) {
  if (image == nullptr) return {};
  const char* const text = static_cast<const char*>(image);
  if (text[0] == '\0') return {};
  // Byte by byte: a text may end before the fourth.
  const auto begins_with = [&](uint32_t magic) {
    for (unsigned i = 0; i < sizeof magic; ++i) {
      if (static_cast<unsigned char>(text[i]) != (magic >> (8 * i) & 0xff)) return false;
    }
    return true;
  };
  if (begins_with(kElfMagic)) return Elf(image);
  if (begins_with(kContainerMagic)) return Container(image);
  if (begins_with(kWrapperMagic)) {
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    return wrapper.container == nullptr ? std::span<const std::byte>()
                                        : Container(wrapper.container);
  }
  const size_t length = strnlen(text, kBytesMax);
  return length == kBytesMax ? std::span<const std::byte>() : Bytes(image, length + 1);
}

}  // namespace shim

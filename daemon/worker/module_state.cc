#include "daemon/worker/module_state.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "ipc/calls/limits.h"

namespace worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint32_t kContainerMagic = 0xba55ed50;
constexpr size_t kContainerHeaderBytes = 16;
constexpr size_t kEntryHeaderBytesMin = 64;
constexpr uint16_t kPtxEntry = 1, kElfEntry = 2;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000;

// A value at an offset; 0 when it lies outside.
template <class T>
T At(Bytes bytes, size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof value <= bytes.size() - offset)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

ModuleState Worse(ModuleState a, ModuleState b) { return std::max(a, b); }

// --- PTX -----------------------------------------------------------------------------------------

bool IsWordEnd(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The name in `.global .align 4 .u32 name[8] = {...};`: the last word before `[`, `=`, `;` or `,`.
std::string_view NameIn(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find_first_of("[=;,"));
  while (!declaration.empty() && IsWordEnd(declaration.back())) declaration.remove_suffix(1);
  const size_t begin = declaration.find_last_of(" \t\n\r");
  return begin == std::string_view::npos ? declaration : declaration.substr(begin + 1);
}

// What a kernel's printf calls.
constexpr std::string_view kPrintFunction = "vprintf";

// Names that compilers give to string literals, which are never written.
bool IsLiteral(std::string_view name) {
  return name.find("$str") != std::string_view::npos || name.starts_with("_$_str") ||
         name.starts_with("__unnamed_") || name.starts_with(".str");
}

// In an instruction the word follows another without a space: ld.global.
bool HasVariables(std::string_view ptx) {
  constexpr std::string_view kWord = ".global";
  for (size_t at = ptx.find(kWord); at != std::string_view::npos; at = ptx.find(kWord, at + 1)) {
    const size_t end = at + kWord.size();
    if (end >= ptx.size() || !IsWordEnd(ptx[end])) continue;
    if (at != 0 && !IsWordEnd(ptx[at - 1])) continue;
    if (!IsLiteral(NameIn(ptx.substr(end)))) return true;
  }
  return false;
}

ModuleState StateOfPtx(std::string_view ptx) {
  ptx = ptx.substr(0, ptx.find('\0'));
  const auto has = [ptx](std::string_view word) {
    return ptx.find(word) != std::string_view::npos;
  };
  const bool calls = has(".callprototype") || has(".calltargets");
  const bool heap = has(" malloc") || has("\tmalloc") || has("cudaMalloc");
  if (HasVariables(ptx) || calls || heap) return ModuleState::kHeld;
  return has(kPrintFunction) ? ModuleState::kPrints : ModuleState::kNone;
}

// --- ELF -----------------------------------------------------------------------------------------

ModuleState StateOfElf(Bytes elf) {
  const Elf64_Ehdr header = At<Elf64_Ehdr>(elf, 0);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0) return ModuleState::kUnknown;
  const auto section = [&](size_t i) {
    return At<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr one = section(i);
    const uint64_t name = names.sh_offset + one.sh_name;
    if (name >= elf.size()) return ModuleState::kUnknown;
    const char* const text = reinterpret_cast<const char*>(elf.data()) + name;
    const std::string_view word(text, strnlen(text, elf.size() - name));
    if (word.starts_with(".nv.global") && one.sh_size != 0) return ModuleState::kHeld;
  }
  const std::string_view all(reinterpret_cast<const char*>(elf.data()), elf.size());
  return all.find(kPrintFunction) == std::string_view::npos ? ModuleState::kNone
                                                            : ModuleState::kPrints;
}

// --- fat binaries --------------------------------------------------------------------------------

bool Expand(Bytes payload, uint64_t flags, uint64_t bytes, std::string* text) {
  if (bytes > ipc::limits::kModuleBytesMax) return false;
  text->resize(bytes);
  const char* const from = reinterpret_cast<const char*>(payload.data());
  if ((flags & kFlagLz4) != 0) {
    return LZ4_decompress_safe(from, text->data(), static_cast<int>(payload.size()),
                               static_cast<int>(bytes)) == static_cast<int64_t>(bytes);
  }
  return ZSTD_decompress(text->data(), bytes, from, payload.size()) == bytes;
}

ModuleState StateOfEntry(Bytes entry, uint32_t header_bytes) {
  const uint16_t kind = At<uint16_t>(entry, 0);
  const uint64_t flags = At<uint64_t>(entry, 40);
  if (kind != kPtxEntry && kind != kElfEntry) return ModuleState::kNone;
  Bytes payload = entry.subspan(header_bytes);
  std::string text;
  if ((flags & (kFlagLz4 | kFlagZstd)) != 0) {
    payload = payload.first(std::min<size_t>(payload.size(), At<uint32_t>(entry, 16)));
    if (!Expand(payload, flags, At<uint64_t>(entry, 56), &text)) return ModuleState::kUnknown;
    payload = std::as_bytes(std::span<const char>(text));
  }
  if (kind == kElfEntry) return StateOfElf(payload);
  return StateOfPtx({reinterpret_cast<const char*>(payload.data()), payload.size()});
}

ModuleState StateOfContainer(Bytes container) {
  Bytes rest = container.subspan(std::min<size_t>(container.size(), At<uint16_t>(container, 6)));
  rest = rest.first(std::min<uint64_t>(rest.size(), At<uint64_t>(container, 8)));
  ModuleState state = ModuleState::kNone;
  while (rest.size() >= kEntryHeaderBytesMin) {
    const uint32_t header_bytes = At<uint32_t>(rest, 4);
    const uint64_t payload_bytes = At<uint64_t>(rest, 8);
    if (header_bytes < kEntryHeaderBytesMin || header_bytes > rest.size() ||
        payload_bytes > rest.size() - header_bytes) {
      return ModuleState::kUnknown;
    }
    state = Worse(state, StateOfEntry(rest.first(header_bytes + payload_bytes), header_bytes));
    rest = rest.subspan(header_bytes + payload_bytes);
  }
  return state;
}

}  // namespace

ModuleState StateOfModule(Bytes image) {
  const uint32_t magic = At<uint32_t>(image, 0);
  if (magic == kElfMagic) return StateOfElf(image);
  if (magic == kContainerMagic && image.size() >= kContainerHeaderBytes)
    return StateOfContainer(image);
  return StateOfPtx({reinterpret_cast<const char*>(image.data()), image.size()});
}

}  // namespace worker

#include "softgpu/jit/load.h"

#include <elf.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace softgpu::jit {
namespace {

constexpr size_t kPage = 4096;

// Functions that LLVM may call where the processor has no instruction.
const void* Outside(std::string_view name) {
  const std::pair<std::string_view, const void*> known[] = {
      {"memcpy", reinterpret_cast<const void*>(
                     static_cast<void* (*)(void*, const void*, size_t)>(std::memcpy))},
      {"memset",
       reinterpret_cast<const void*>(static_cast<void* (*)(void*, int, size_t)>(std::memset))},
  };
  for (const auto& [word, address] : known) {
    if (word == name) return address;
  }
  return nullptr;
}

class Loader {
 public:
  Loader(std::string_view object, std::string* error) : object_(object), error_(error) {}

  bool Run(const char* entry, Loaded* loaded) {
    if (!ReadHeaders() || !Place() || !Relocate()) return false;
    const std::byte* at = FindEntry(entry);
    if (at == nullptr) return Fail("no such function");
    if (mprotect(memory_.get(), bytes_, PROT_READ | PROT_EXEC) != 0) return Fail("mprotect");
    loaded->entry = const_cast<std::byte*>(at);
    loaded->memory = memory_;
    return true;
  }

 private:
  bool Fail(const std::string& why) {
    *error_ = "object file: " + why;
    return false;
  }

  template <class T>
  bool Read(size_t offset, T* value) const {
    if (offset > object_.size() || object_.size() - offset < sizeof(T)) return false;
    std::memcpy(value, object_.data() + offset, sizeof(T));
    return true;
  }

  bool Inside(const Elf64_Shdr& s) const {
    return s.sh_offset <= object_.size() && object_.size() - s.sh_offset >= s.sh_size;
  }

  bool ReadHeaders() {
    Elf64_Ehdr header;
    if (!Read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64) {
      return Fail("not a relocatable one for this processor");
    }
    sections_.resize(header.e_shnum);
    for (size_t n = 0; n < sections_.size(); ++n) {
      if (!Read(header.e_shoff + n * sizeof(Elf64_Shdr), &sections_[n])) return Fail("cut short");
      const Elf64_Shdr& s = sections_[n];
      if (s.sh_type != SHT_NOBITS && !Inside(s)) return Fail("cut short");
      if (s.sh_type == SHT_SYMTAB) symbols_ = n;
    }
    if (symbols_ == 0) return Fail("no symbols");
    const Elf64_Shdr& table = sections_[symbols_];
    if (table.sh_link >= sections_.size()) return Fail("no names");
    return true;
  }

  bool Place() {
    size_t cursor = 0;
    places_.assign(sections_.size(), ~size_t{0});
    for (size_t n = 0; n < sections_.size(); ++n) {
      const Elf64_Shdr& s = sections_[n];
      if ((s.sh_flags & SHF_ALLOC) == 0 || s.sh_size > (64u << 20)) continue;
      const size_t align = std::max<size_t>(s.sh_addralign, 1);
      if (align > kPage) return Fail("alignment");
      cursor = (cursor + align - 1) / align * align;
      places_[n] = cursor;
      cursor += s.sh_size;
    }
    bytes_ = (cursor + kPage) / kPage * kPage;
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return Fail("no memory");
    const size_t bytes = bytes_;
    memory_.reset(static_cast<std::byte*>(at), [bytes](std::byte* p) { munmap(p, bytes); });
    for (size_t n = 0; n < sections_.size(); ++n) {
      const Elf64_Shdr& s = sections_[n];
      if (places_[n] == ~size_t{0} || s.sh_type == SHT_NOBITS) continue;
      std::memcpy(memory_.get() + places_[n], object_.data() + s.sh_offset, s.sh_size);
    }
    return true;
  }

  std::string_view NameOf(const Elf64_Sym& symbol) const {
    const Elf64_Shdr& names = sections_[sections_[symbols_].sh_link];
    if (!Inside(names) || symbol.st_name >= names.sh_size) return {};
    const char* text = object_.data() + names.sh_offset + symbol.st_name;
    return {text, strnlen(text, names.sh_size - symbol.st_name)};
  }

  const std::byte* AddressOf(uint64_t index) const {
    Elf64_Sym symbol;
    const Elf64_Shdr& table = sections_[symbols_];
    if (index >= table.sh_size / sizeof symbol ||
        !Read(table.sh_offset + index * sizeof symbol, &symbol)) {
      return nullptr;
    }
    if (symbol.st_shndx == SHN_UNDEF) return static_cast<const std::byte*>(Outside(NameOf(symbol)));
    if (symbol.st_shndx >= sections_.size() || places_[symbol.st_shndx] == ~size_t{0})
      return nullptr;
    return memory_.get() + places_[symbol.st_shndx] + symbol.st_value;
  }

  bool Relocate() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_RELA || s.sh_info >= sections_.size()) continue;
      if (places_[s.sh_info] == ~size_t{0}) continue;
      for (size_t n = 0; n < s.sh_size / sizeof(Elf64_Rela); ++n) {
        Elf64_Rela rela;
        if (!Read(s.sh_offset + n * sizeof rela, &rela) || !Apply(sections_[s.sh_info], s, rela))
          return Fail("a relocation that is not known here");
      }
    }
    return true;
  }

  bool Apply(const Elf64_Shdr& target, const Elf64_Shdr& list, const Elf64_Rela& rela) {
    const std::byte* symbol = AddressOf(ELF64_R_SYM(rela.r_info));
    const uint32_t type = ELF64_R_TYPE(rela.r_info);
    const size_t size = type == R_X86_64_64 ? 8 : 4;
    if (symbol == nullptr || rela.r_offset > target.sh_size ||
        target.sh_size - rela.r_offset < size)
      return false;
    std::byte* at = memory_.get() + places_[list.sh_info] + rela.r_offset;
    const int64_t value = reinterpret_cast<int64_t>(symbol) + rela.r_addend;
    if (type == R_X86_64_64) {
      std::memcpy(at, &value, 8);
      return true;
    }
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) return false;
    const int64_t distance = value - reinterpret_cast<int64_t>(at);
    const int32_t narrow = static_cast<int32_t>(distance);
    if (narrow != distance) return false;
    std::memcpy(at, &narrow, 4);
    return true;
  }

  const std::byte* FindEntry(std::string_view name) const {
    const Elf64_Shdr& table = sections_[symbols_];
    for (uint64_t n = 0; n < table.sh_size / sizeof(Elf64_Sym); ++n) {
      Elf64_Sym symbol;
      if (!Read(table.sh_offset + n * sizeof symbol, &symbol)) return nullptr;
      if (NameOf(symbol) == name) return AddressOf(n);
    }
    return nullptr;
  }

  const std::string_view object_;
  std::string* error_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<size_t> places_;  // in memory_
  size_t symbols_ = 0, bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace

bool LoadObject(std::string_view object, const char* entry, Loaded* loaded, std::string* error) {
  return Loader(object, error).Run(entry, loaded);
}

}  // namespace softgpu::jit

// Object files that are none, or are cut short, are refused.
#include "softgpu/jit/load.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace softgpu::jit {
namespace {

// `mov $42, %eax; ret` as the function "f".
std::string SmallObject() {
  const char code[] = {'\xb8', 42, 0, 0, 0, '\xc3'};
  const char names[] = "\0f";
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_shoff = sizeof header;
  header.e_shnum = 4;
  Elf64_Shdr sections[4] = {};
  const uint64_t data = sizeof header + sizeof sections;
  sections[1] = {0, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, data, sizeof code, 0, 0, 16, 0};
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 1;
  symbols[1].st_shndx = 1;
  sections[2] = {0, SHT_SYMTAB, 0, 0, data + sizeof code, sizeof symbols, 3, 0, 8, sizeof *symbols};
  sections[3] = {0, SHT_STRTAB, 0, 0, data + sizeof code + sizeof symbols, sizeof names,
                 0, 0,          1, 0};
  std::string object(reinterpret_cast<const char*>(&header), sizeof header);
  object.append(reinterpret_cast<const char*>(sections), sizeof sections);
  object.append(code, sizeof code);
  object.append(reinterpret_cast<const char*>(symbols), sizeof symbols);
  object.append(names, sizeof names);
  return object;
}

TEST(LoadTest, RunsAFunction) {
  Loaded loaded;
  std::string error;
  ASSERT_TRUE(LoadObject(SmallObject(), "f", &loaded, &error)) << error;
  EXPECT_EQ(reinterpret_cast<int (*)()>(loaded.entry)(), 42);
  EXPECT_FALSE(LoadObject(SmallObject(), "g", &loaded, &error));
}

TEST(LoadTest, RefusesEveryCut) {
  const std::string object = SmallObject();
  for (size_t bytes = 0; bytes + 3 < object.size(); ++bytes) {
    Loaded loaded;
    std::string error;
    EXPECT_FALSE(LoadObject(object.substr(0, bytes), "f", &loaded, &error)) << bytes;
  }
}

}  // namespace
}  // namespace softgpu::jit

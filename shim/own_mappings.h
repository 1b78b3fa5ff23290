// This process's own mappings, as the kernel lists them (/proc/self/maps). By them the client
// decides which pages of the program may be exchanged for others.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shim {

struct Mapping {
  // kSpecial: the kernel's own, huge pages, a device's: pages that only their maker can make.
  enum class Kind : uint8_t { kPrivate, kShared, kStack, kSpecial };
  Kind kind = Kind::kSpecial;
  bool read_write = false;
  uint64_t begin = 0, end = 0;
  uint64_t offset = 0, inode = 0;  // in its file
};

// One line without its end; nothing for a line of another form.
std::optional<Mapping> ParseMapping(std::string_view line);

// The mappings that overlap [begin, end), in their order; empty when there are none, or the kernel
// does not say. Thread safety: any thread.
std::vector<Mapping> MappingsWithin(uint64_t begin, uint64_t end);

// Why the pages of [begin, end), whole ones, can't be exchanged for others: the rest of a sentence
// that begins "the memory". Nothing: they can. `own_stack`: an address on the caller's stack.
std::optional<std::string_view> WhyFixed(const std::vector<Mapping>& mappings, uint64_t begin,
                                         uint64_t end, uint64_t own_stack);

}  // namespace shim

// The top level of a PTX text, as a linker sees it: which symbols a text defines and needs, and the
// pieces of text of which a joined module is made.
//
// Thread safety: functions without state. Views point into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "softgpu/ptx/types.h"

namespace softgpu::ptx {

struct LinkItem {
  enum class Kind : uint8_t { kVariable, kFunction, kEntry, kOther };
  // In the order of their strength; a symbol of no linkage belongs to its text alone.
  enum class Linkage : uint8_t { kNone, kExtern, kCommon, kWeak, kVisible };

  Kind kind = Kind::kOther;
  Linkage linkage = Linkage::kNone;
  bool defined = false;          // false: declares what this or another text defines
  Space space = Space::kGlobal;  // of a variable
  uint64_t bytes = 0;            // of a variable; 0 when the text leaves its size open
  std::string_view name;
  // A variable is prefix + head + definition: ".global .align 4 .u32" + "x[2]" + "= {1, 2}", since
  // one prefix may serve several names. A function is head + definition: ".func f()" + "{ ... }".
  // Anything else is head alone.
  std::string_view prefix, head, definition;
  std::vector<uint64_t> signature;  // of a function: bytes of its results, a mark, its parameters
};

struct LinkText {
  int version = 0;          // 83 for ".version 8.3"
  int architecture = 0;     // 90 for ".target sm_90a"
  std::string_view target;  // "sm_90a"
  uint64_t files = 0;       // one more than the highest number of a .file
  std::vector<LinkItem> items;
  std::unordered_set<std::string_view> used;  // words in bodies and initial values
};

// False, with a sentence, for a text that no module begins like; what is wrong inside of bodies is
// the parser's to say.
bool ScanLinkTextUntrusted(std::string_view ptx, LinkText* text, std::string* error);

}  // namespace softgpu::ptx

// Joins PTX texts into one module, as nvlink joins the objects that ptxas makes of them.
//
// Symbols follow the linking directives of the PTX ISA (section 10): two .visible definitions of a
// name are refused, .weak gives way to .visible and merges with .weak, .common merges to the larger
// size, and a symbol without a directive stays apart in each text, under another name where two
// would meet. Sizes, spaces and prototypes must agree. The sentences are nvlink's.
//
// Thread safety: none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/link_item.h"

namespace softgpu::ptx {

class Link {
 public:
  enum class Outcome { kOk, kBadText, kConflict, kUndefined };

  // `name` stands for the text in sentences. After a failure the link is of no use.
  Outcome Add(std::string ptx, std::string name);

  // The joined text; one text alone is returned as it came. REQUIRES: something was added.
  Outcome Finish(std::string* joined);

  bool empty() const { return inputs_.empty(); }
  const std::string& error() const { return error_; }  // of the failed call

 private:
  struct Input {
    std::string name, ptx;
    LinkText text;  // of `ptx`
    // New names of symbols that only this text knows.
    std::unordered_map<std::string_view, std::string> renamed;
  };
  // The text that stands for a name in the joined module: its strongest definition, else its first
  // declaration.
  struct Global {
    const LinkItem* item;
    const Input* input;
  };

  Outcome Conflict(std::string sentence);
  Outcome AddGlobal(const Input& input, const LinkItem& item);
  std::string Mismatch(const Global& known, const Input& input, const LinkItem& item) const;
  Outcome CheckDefined();
  void RenameStatics();
  std::string FreshMark() const;
  void Append(const Input& input, const LinkItem& item, uint64_t first_file, std::string* to) const;

  std::vector<std::unique_ptr<Input>> inputs_;
  std::unordered_map<std::string_view, Global> globals_;
  std::string error_;
};

}  // namespace softgpu::ptx

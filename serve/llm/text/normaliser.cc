#include "serve/llm/text/normaliser.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace serve::llm {
namespace {

// No character becomes more than 18 in a normal form, and a few bytes are more than any mark.
constexpr size_t kGrowthMax = 32;
constexpr size_t kGrowthOfShortTexts = 4096;

struct FreeBytes {
  void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
};

std::string InForm(const std::string& text, int form) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(form | UTF8PROC_STABLE));
  const std::unique_ptr<utf8proc_uint8_t, FreeBytes> owned(made);
  if (size < 0) return text;  // no memory: valid UTF-8 has no other failure
  return {reinterpret_cast<const char*>(made), static_cast<size_t>(size)};
}

std::string Changed(const std::string& text, const TextStep& step, bool begins) {
  const bool marked = text.compare(0, step.to.size(), step.to) == 0;
  switch (step.change) {
    case TextChange::kNfc:
      return InForm(text, UTF8PROC_COMPOSE);
    case TextChange::kNfd:
      return InForm(text, UTF8PROC_DECOMPOSE);
    case TextChange::kNfkc:
      return InForm(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case TextChange::kNfkd:
      return InForm(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    case TextChange::kReplace:
      return absl::StrReplaceAll(text, {{step.from, step.to}});
    case TextChange::kPrepend:
      return text.empty() ? text : absl::StrCat(step.to, text);
    case TextChange::kPrependOnce:
      return marked ? text : absl::StrCat(step.to, text);
    case TextChange::kPrependFirst:
      return marked || !begins ? text : absl::StrCat(step.to, text);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> Normalised(std::string_view text, const std::vector<TextStep>& steps,
                                       bool begins) {
  std::string changed(text);
  for (const TextStep& step : steps) {
    changed = Changed(changed, step, begins);
    if (changed.size() > text.size() * kGrowthMax + kGrowthOfShortTexts)
      return absl::ResourceExhaustedError(
          "the tokenizer makes this text too long; send it in parts");
  }
  return changed;
}

}  // namespace serve::llm

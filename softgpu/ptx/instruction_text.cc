#include "softgpu/ptx/instruction_text.h"

#include <map>
#include <string_view>
#include <vector>

#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/modifier_words.h"

namespace softgpu::ptx {
namespace {

enum class Kind { kSection, kRow, kRefused };

struct Line {
  Kind kind;
  std::string_view name;    // of an instruction, or a section's title
  std::string_view words;   // kRefused: which forms
  std::string_view reason;  // kRefused
};

// The table once more, in its order.
constexpr Line kLines[] = {
#define PTX_INSTRUCTION(name, ...) {Kind::kRow, #name, "", ""},
#define PTX_REFUSED(name, reason) {Kind::kRefused, #name, "", reason},
#define PTX_REFUSED_FORM(name, words, reason) {Kind::kRefused, #name, words, reason},
#define PTX_SECTION(title) {Kind::kSection, title, "", ""},
#include "softgpu/ptx/instructions.inc"
};

constexpr char kIntroduction[] = R"(# PTX: what the software device executes

Made from softgpu/ptx/instructions.inc, the table that the parser decodes by, with `ptx_table`; a
test fails when this page is stale. Modules of any `.version` and `.target` load as long as each of
their instructions is listed here as supported; any other fails the load with
CUDA_ERROR_INVALID_PTX, and the JIT error log names the instruction, its line and the reason.

Modifiers are shown without their dots. *Memory words* are the cache operators, eviction priorities,
prefetch sizes, orderings and scopes at the end of this page: accepted everywhere, and without
effect where they are hints, since memory here is coherent and has no caches of its own.
)";

std::string Quoted(std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    text += (text.empty() ? "`" : " `") + std::string(words.substr(0, end)) + "`";
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return text;
}

// A bar would end the cell of a table.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string WordsOf(uint64_t classes) {
  std::string text;
  for (const Word& word : Words()) {
    if ((word.modifier_class & classes) != 0) text += std::string(word.text) + " ";
  }
  return Quoted(text.substr(0, text.empty() ? 0 : text.size() - 1));
}

std::string ModifiersOf(const Row& row) {
  std::string text = WordsOf(row.modifiers & ~uint64_t{kmMemory});
  if ((row.modifiers & kmMemory) != 0) text += text.empty() ? "*memory words*" : " *memory words*";
  return text;
}

// Lists of types are separated as the instruction has them: result, then sources.
std::string TypesOf(std::string_view types) {
  std::string text;
  while (!types.empty()) {
    const size_t end = std::min(types.find('/'), types.size());
    text += (text.empty() ? "" : " / ") + Quoted(types.substr(0, end));
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return text;
}

const Row& RowNamed(std::string_view name) {
  size_t n = 0;
  while (Rows()[n].name != name) ++n;
  return Rows()[n];
}

// One section: a table of what works, then what is refused, grouped by reason.
std::string Section(const std::vector<Line>& lines) {
  std::string rows, refusals;
  std::vector<std::pair<std::string_view, std::string>> by_reason;
  for (const Line& line : lines) {
    if (line.kind == Kind::kRow) {
      const Row& row = RowNamed(line.name);
      rows += "| `" + std::string(row.name) + "` | " + ModifiersOf(row) + " | " +
              TypesOf(row.types) + " | " + Escaped(row.summary) + " |\n";
      continue;
    }
    if (by_reason.empty() || by_reason.back().first != line.reason) {
      by_reason.emplace_back(line.reason, "");
    }
    std::string& list = by_reason.back().second;
    list += (list.empty() ? "`" : ", `") + std::string(line.name) + "`";
    if (!line.words.empty()) list += " with " + Quoted(line.words);
  }
  for (const auto& [reason, list] : by_reason) {
    refusals += "- " + list + ": " + std::string(reason) + "\n";
  }
  std::string text = "\n";
  if (!rows.empty()) text += "| instruction | modifiers | types | |\n|---|---|---|---|\n" + rows;
  if (!rows.empty() && !refusals.empty()) text += "\n";
  if (!refusals.empty()) text += "Refused:\n\n" + refusals;
  return text;
}

std::string Summary() {
  size_t whole = 0;
  for (const Refusal& refusal : Refusals()) whole += refusal.words.empty();
  return "\n" + std::to_string(Rows().size()) + " instructions are supported; " +
         std::to_string(whole) +
         " instructions or families of instructions are refused as a whole.\n";
}

}  // namespace

std::string PtxMarkdown() {
  std::string text = kIntroduction + Summary();
  std::vector<Line> lines;
  std::string_view title;
  const auto flush = [&] {
    if (!title.empty()) text += "\n## " + std::string(title) + "\n" + Section(lines);
    lines.clear();
  };
  for (const Line& line : kLines) {
    if (line.kind == Kind::kSection) {
      flush();
      title = line.name;
    } else {
      lines.push_back(line);
    }
  }
  flush();
  return text + "\n## Memory words\n\n" + WordsOf(kmMemory) + "\n";
}

}  // namespace softgpu::ptx

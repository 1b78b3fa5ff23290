#include "softgpu/ptx/instruction_table.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "softgpu/ptx/modifier_words.h"

namespace softgpu::ptx {
namespace {

constexpr Row kRows[] = {
#define PTX_INSTRUCTION(name, id, signature, modifiers, types, summary) \
  {#name, Op::id, signature, modifiers, types, summary},
#include "softgpu/ptx/instructions.inc"
};

constexpr Refusal kRefusals[] = {
#define PTX_REFUSED(name, reason) {#name, "", reason},
#define PTX_REFUSED_FORM(name, words, reason) {#name, words, reason},
#include "softgpu/ptx/instructions.inc"
};

const Row* FindRow(std::string_view mnemonic, std::string_view* rest) {
  static const std::unordered_map<std::string_view, const Row*>* const by_name = [] {
    std::unordered_map<std::string_view, const Row*>* map =
        new std::unordered_map<std::string_view, const Row*>();
    for (const Row& row : kRows) map->emplace(row.name, &row);
    return map;
  }();
  // Names of more than one word ("bar.warp.sync") win over their first word.
  for (int words = 4; words >= 1; --words) {
    size_t end = 0;
    for (int i = 0; i < words && end != std::string_view::npos; ++i) {
      end = mnemonic.find('.', i == 0 ? 0 : end + 1);
    }
    const auto found = by_name->find(mnemonic.substr(0, end));
    if (found == by_name->end()) continue;
    *rest = end == std::string_view::npos ? std::string_view() : mnemonic.substr(end);
    return found->second;
  }
  return nullptr;
}

bool ListHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

void Apply(const Word& word, Instruction* out) {
  switch (word.field) {
    case Field::kRounding:
      out->rounding = static_cast<Rounding>(word.value);
      break;
    case Field::kFlag:
      out->flags |= word.value;
      break;
    case Field::kMode:
      out->mode = static_cast<uint8_t>(word.value);
      out->flags |= kHasMode;
      break;
    case Field::kCombine:
      out->combine = static_cast<Combine>(word.value);
      break;
    case Field::kSpace:
      (out->space == Space::kGeneric ? out->space : out->space2) = static_cast<Space>(word.value);
      break;
    case Field::kVector:
      out->vector = static_cast<uint8_t>(word.value);
      break;
    case Field::kNothing:
      break;
  }
}

// Types come in the order of the row's '/'-separated lists; one may be the last of its list alone.
bool TakeType(std::string_view text, std::string_view* lists, int* slot, Instruction* out) {
  const Type type = TypeFromName(text);
  if (type == Type::kNone || lists->empty()) return false;
  const size_t end = std::min(lists->find('/'), lists->size());
  if (!ListHas(lists->substr(0, end), text)) return false;
  lists->remove_prefix(std::min(end + 1, lists->size()));
  Type* const slots[] = {&out->type, &out->type2, &out->type3, &out->type4};
  *slots[(*slot)++] = type;
  return true;
}

// Why the table refuses `mnemonic`, or `word` of instruction `name`; empty when it says nothing.
std::string_view ReasonOf(std::string_view mnemonic) {
  std::string_view reason;
  size_t longest = 0;
  for (const Refusal& refusal : kRefusals) {
    const std::string_view name = refusal.name;
    if (!refusal.words.empty() || name.size() <= longest) continue;
    if (mnemonic.substr(0, name.size()) != name) continue;
    if (mnemonic.size() > name.size() && mnemonic[name.size()] != '.') continue;
    reason = refusal.reason;
    longest = name.size();
  }
  return reason;
}
std::string_view ReasonOf(std::string_view name, std::string_view word) {
  for (const Refusal& refusal : kRefusals) {
    if (refusal.name == name && ListHas(refusal.words, word)) return refusal.reason;
  }
  return {};
}

}  // namespace

std::span<const Refusal> Refusals() { return kRefusals; }

std::span<const Row> Rows() { return kRows; }

std::string ReadMnemonic(std::string_view mnemonic, Instruction* out) {
  const std::string quoted = "'" + std::string(mnemonic) + "'";
  const std::string_view refused = ReasonOf(mnemonic);
  std::string_view rest;
  const Row* row = refused.empty() ? FindRow(mnemonic, &rest) : nullptr;
  if (row == nullptr && refused.empty()) return "Not a name of any known instruction: " + quoted;
  if (row == nullptr) return "Instruction " + quoted + " is refused: " + std::string(refused);
  out->op = row->op;
  std::string_view lists = row->types;
  int slot = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('.', 1), rest.size());
    const std::string_view text = rest.substr(1, end - 1);
    rest.remove_prefix(end);
    if (TakeType(text, &lists, &slot, out)) continue;
    const std::span<const Word> words = Words();
    const auto word = std::find_if(words.begin(), words.end(), [&](const Word& w) {
      return (w.modifier_class & row->modifiers) != 0 && w.text == text;
    });
    if (word != words.end()) {
      Apply(*word, out);
      continue;
    }
    const std::string modifier = "modifier '." + std::string(text) + "' of instruction " + quoted;
    const std::string_view reason = ReasonOf(row->name, text);
    if (reason.empty()) return "Unknown " + modifier;
    return "The " + modifier + " is refused: " + std::string(reason);
  }
  if (!row->types.empty() && slot == 0) {
    const bool optional =
        row->op == Op::kBar || row->op == Op::kBarrier || row->op == Op::kNanosleep;
    if (!optional) return "Type missing in instruction " + quoted;
  }
  return {};
}

}  // namespace softgpu::ptx

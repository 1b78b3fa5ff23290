#include "softgpu/ptx/link.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/find.h"
#include "softgpu/ptx/ir.h"
#include "softgpu/ptx/lexer.h"

namespace softgpu::ptx {
namespace {

// Names that a text defines for itself alone.
std::unordered_set<std::string_view> StaticsOf(const LinkText& text) {
  std::unordered_set<std::string_view> names;
  for (const LinkItem& item : text.items) {
    if (item.defined && item.linkage == LinkItem::Linkage::kNone) names.insert(item.name);
  }
  return names;
}

std::string_view Directive(LinkItem::Linkage linkage) {
  switch (linkage) {
    case LinkItem::Linkage::kNone:
      return "";
    case LinkItem::Linkage::kExtern:
      return ".extern ";
    case LinkItem::Linkage::kCommon:
      return ".common ";
    case LinkItem::Linkage::kWeak:
      return ".weak ";
    case LinkItem::Linkage::kVisible:
      return ".visible ";
  }
  return "";
}

// A declaration counts less than any definition.
int Strength(const LinkItem& item) { return item.defined ? static_cast<int>(item.linkage) : 0; }

// Copies `from`, with new names of symbols and files.
void AppendText(std::string_view from,
                const std::unordered_map<std::string_view, std::string>& renamed,
                uint64_t first_file, std::string* to) {
  if (renamed.empty() && first_file == 0) {
    to->append(from);
    return;
  }
  const char* copied = from.data();
  Lexer lex(from);
  bool file_follows = false;
  for (Token token = lex.Next(); token.kind != Token::Kind::kEnd; token = lex.Next()) {
    std::string fresh;
    if (file_follows && token.kind == Token::Kind::kInteger)
      fresh = std::to_string(token.bits + first_file);
    else if (token.kind == Token::Kind::kWord)
      fresh = base::FindOr(renamed, token.text, {});
    file_follows = token.Is(".file") || token.Is(".loc") || token.Is("inlined_at");
    if (fresh.empty()) continue;
    to->append(copied, token.text.data());
    to->append(fresh);
    copied = token.text.data() + token.text.size();
  }
  to->append(copied, from.data() + from.size());
}

// The first kernel or function whose body has `name` in it.
std::string UserOf(const LinkText& text, std::string_view name) {
  for (const LinkItem& item : text.items) {
    const bool body = item.kind == LinkItem::Kind::kEntry || item.kind == LinkItem::Kind::kFunction;
    if (!body || item.definition.find(name) == std::string_view::npos) continue;
    return (item.kind == LinkItem::Kind::kEntry ? "kernel " : "function ") +
           ReadableName(std::string(item.name));
  }
  return "a function";
}

}  // namespace

Link::Outcome Link::Conflict(std::string sentence) {
  error_ = std::move(sentence);
  return Outcome::kConflict;
}

Link::Outcome Link::Add(std::string ptx, std::string name) {
  // Views into the text outlive this call, so the input has an address of its own.
  inputs_.push_back(std::make_unique<Input>());
  Input& input = *inputs_.back();
  input.ptx = std::move(ptx);
  input.name = std::move(name);
  if (!ScanLinkTextUntrusted(input.ptx, &input.text, &error_)) return Outcome::kBadText;
  const std::unordered_set<std::string_view> statics = StaticsOf(input.text);
  std::unordered_set<std::string_view> defined;
  for (const LinkItem& item : input.text.items) {
    if (item.kind == LinkItem::Kind::kOther) continue;
    if (item.defined && !defined.insert(item.name).second)
      return Conflict("Duplicate definition of '" + std::string(item.name) + "' in '" + input.name +
                      "'");
    if (statics.contains(item.name)) continue;
    // Names that this text keeps to itself meet no other text's.
    const Outcome outcome = AddGlobal(input, item);
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

// The linker's sentence when two symbols of one name can't be the same symbol; else empty. The kind
// goes first, then the space and the size: as in nvlink, later differences follow from earlier
// ones.
std::string Link::Mismatch(const Global& known, const Input& input, const LinkItem& item) const {
  const LinkItem& first = *known.item;
  const std::string name = "'" + std::string(item.name) + "'";
  const std::string places =
      " in '" + input.name + "', first specified in '" + known.input->name + "'";
  if ((first.kind == LinkItem::Kind::kVariable) != (item.kind == LinkItem::Kind::kVariable))
    return "Memory space doesn't match for " + name + places;
  if (item.kind != LinkItem::Kind::kVariable) {
    if (first.kind != item.kind)
      return "Function " + name + " not declared __global__ in all source files";
    return first.signature == item.signature ? std::string()
                                             : "Prototype doesn't match for " + name + places;
  }
  if (first.space != item.space) return "Memory space doesn't match for " + name + places;
  const bool commons =
      first.linkage == LinkItem::Linkage::kCommon && item.linkage == LinkItem::Linkage::kCommon;
  if (first.bytes == 0 || item.bytes == 0 || first.bytes == item.bytes || commons) return {};
  return "Size doesn't match for " + name + places;
}

Link::Outcome Link::AddGlobal(const Input& input, const LinkItem& item) {
  const auto [at, added] = globals_.try_emplace(item.name, Global{&item, &input});
  if (added) return Outcome::kOk;
  Global& known = at->second;
  const std::string mismatch = Mismatch(known, input, item);
  if (!mismatch.empty()) return Conflict(mismatch);
  const int before = Strength(*known.item), now = Strength(item);
  if (before == now && now == static_cast<int>(LinkItem::Linkage::kVisible)) {
    return Conflict("Multiple definition of '" + std::string(item.name) + "' in '" + input.name +
                    "', first defined in '" + known.input->name + "'");
  }
  const bool larger =
      before == now && item.linkage == LinkItem::Linkage::kCommon && item.bytes > known.item->bytes;
  if (now > before || larger) known = Global{&item, &input};
  return Outcome::kOk;
}

// As nvlink does, refuses a variable that is only declared, and such a function once it is used.
// Dynamic shared memory has no definition.
Link::Outcome Link::CheckDefined() {
  for (const std::unique_ptr<Input>& input : inputs_) {
    const std::unordered_set<std::string_view> statics = StaticsOf(input->text);
    for (const LinkItem& item : input->text.items) {
      if (item.kind == LinkItem::Kind::kOther || item.kind == LinkItem::Kind::kEntry ||
          item.defined)
        continue;
      if (statics.contains(item.name) || globals_.at(item.name).item->defined) continue;
      const bool dynamic = item.space == Space::kShared && item.bytes == 0;
      const bool needed =
          item.kind == LinkItem::Kind::kVariable
              ? !dynamic
              : input->text.used.contains(item.name) && FindBuiltin(item.name) == Builtin::kNone;
      if (!needed) continue;
      error_ = "Undefined reference to '" + std::string(item.name) + "' in '" + input->name + "'";
      if (LaunchesFromDevice(item.name))
        error_ += ": " + UserOf(input->text, item.name) + kNoLaunches;
      return Outcome::kUndefined;
    }
  }
  return Outcome::kOk;
}

// A word that no text contains, so that a name which ends in it is new to all of them.
std::string Link::FreshMark() const {
  for (int number = 1;; ++number) {
    const std::string mark = "$text" + std::to_string(number) + "_";
    const bool known =
        std::any_of(inputs_.begin(), inputs_.end(), [&](const std::unique_ptr<Input>& input) {
          return input->ptx.find(mark) != std::string::npos;
        });
    if (!known) return mark;
  }
}

// A symbol of one text alone keeps its name, which programs may ask for, unless the name is taken.
void Link::RenameStatics() {
  const std::string mark = FreshMark();
  std::unordered_set<std::string_view> taken;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input* const input = inputs_[i].get();
    const std::unordered_set<std::string_view> statics = StaticsOf(input->text);
    for (const LinkItem& item : input->text.items) {
      if (!item.defined || !statics.contains(item.name)) continue;
      if (globals_.contains(item.name) || !taken.insert(item.name).second)
        input->renamed[item.name] = std::string(item.name) + mark + std::to_string(i);
    }
  }
}

void Link::Append(const Input& input, const LinkItem& item, uint64_t first_file,
                  std::string* to) const {
  const Global* const global = base::FindOrNull(globals_, item.name);
  const bool foreign = item.kind != LinkItem::Kind::kOther && global != nullptr &&
                       !input.renamed.contains(item.name);
  const bool chosen = foreign ? global->item == &item : item.defined;
  to->append(
      Directive(foreign && !(chosen && item.defined) ? LinkItem::Linkage::kExtern : item.linkage));
  for (const std::string_view piece :
       {item.prefix, item.head, chosen && item.defined ? item.definition : std::string_view()}) {
    AppendText(piece, input.renamed, first_file, to);
    if (!piece.empty()) *to += ' ';
  }
  const bool body = item.kind != LinkItem::Kind::kVariable && chosen && item.defined;
  to->append(item.kind == LinkItem::Kind::kOther || body ? "\n" : ";\n");
}

Link::Outcome Link::Finish(std::string* joined) {
  const Outcome defined = CheckDefined();
  if (defined != Outcome::kOk) return defined;
  if (inputs_.size() == 1) {
    *joined = inputs_[0]->ptx;
    return Outcome::kOk;
  }
  RenameStatics();
  // A module has one header, which must allow what the newest of the texts uses.
  const LinkText* newest = &inputs_[0]->text;
  int version = 0;
  for (const std::unique_ptr<Input>& input : inputs_) {
    version = std::max(version, input->text.version);
    if (input->text.architecture > newest->architecture) newest = &input->text;
  }
  *joined = ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) +
            "\n.target " + std::string(newest->target.empty() ? "sm_50" : newest->target) +
            "\n.address_size 64\n";
  // Each text counts its source files from its own first one.
  uint64_t first_file = 0;
  for (const std::unique_ptr<Input>& input : inputs_) {
    for (const LinkItem& item : input->text.items) Append(*input, item, first_file, joined);
    first_file += input->text.files;
  }
  return Outcome::kOk;
}

}  // namespace softgpu::ptx

#include "serve/llm/text/jinja/builtin.h"

#include <algorithm>

#include "serve/llm/text/jinja/sentence.h"

namespace serve::llm::jinja {
namespace {

// The names of the parameters, and how many of them must be given.
std::vector<std::string_view> ParametersOf(const Builtin& builtin, std::vector<bool>* optional) {
  std::vector<std::string_view> names;
  for (std::string_view rest = builtin.parameters; !rest.empty();) {
    std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    optional->push_back(name.back() == '?');
    if (optional->back()) name.remove_suffix(1);
    names.push_back(name);
  }
  return names;
}

// False: no parameter has this name, or it has a value already.
bool GiveNamed(const std::vector<std::string_view>& names, std::string_view name,
               const Value& value, Given* given) {
  const size_t index =
      static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (index == names.size() || given->given[index]) return false;
  given->given[index] = true;
  given->values[index] = value;
  return true;
}

}  // namespace

const Builtin* FindBuiltin(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const Builtin& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Value CallBuiltin(Rendering& rendering, const Builtin& builtin, const Value& self,
                  const Arguments& arguments) {
  Given given{.all = &arguments};
  if (!rendering.Spend(1)) return Value();
  if (builtin.parameters == "*") return builtin.apply(rendering, self, given);
  std::vector<bool> optional;
  const std::vector<std::string_view> names = ParametersOf(builtin, &optional);
  if (arguments.positional.size() > names.size())
    return rendering.Fail(Sentence("'", builtin.name, "' takes at most ", names.size(),
                                   " arguments, and gets ", arguments.positional.size()));
  given.values = arguments.positional;
  given.values.resize(names.size());
  given.given.resize(names.size());
  std::fill_n(given.given.begin(), arguments.positional.size(), true);
  for (const auto& [name, value] : arguments.named)
    if (!GiveNamed(names, name, value, &given))
      return rendering.Fail(
          Sentence("'", builtin.name, "' takes no argument '", name, "', or it was given twice"));
  for (size_t index = 0; index < names.size(); ++index)
    if (!given.given[index] && !optional[index])
      return rendering.Fail(
          Sentence("'", builtin.name, "' lacks its argument '", names[index], "'"));
  return builtin.apply(rendering, self, given);
}

std::span<const Builtin> MethodsOf(const Value& value) {
  if (value.AsText() != nullptr) return TextMethods();
  if (value.AsMapping() != nullptr) return MappingMethods();
  if (value.AsLoop() != nullptr) return LoopMethods();
  const Sequence* const sequence = value.AsSequence();
  if (sequence != nullptr && sequence->form <= SequenceForm::kTuple) return SequenceMethods();
  return {};
}

bool IsMethodName(std::string_view name) {
  for (const std::span<const Builtin> table :
       {TextMethods(), MappingMethods(), SequenceMethods(), LoopMethods()})
    if (FindBuiltin(table, name) != nullptr) return true;
  return false;
}

std::string_view TextArgument(Rendering& rendering, const Value& value,
                              std::string_view parameter) {
  const std::string* const text = value.AsText();
  if (text == nullptr)
    rendering.Fail(Sentence("'", parameter, "' must be a text, and is ", value.type_name()));
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

int64_t IntegerArgument(Rendering& rendering, const Value& value, std::string_view parameter) {
  int64_t number = 0;
  if (!value.AsInteger(&number))
    rendering.Fail(
        Sentence("'", parameter, "' must be a whole number, and is ", value.type_name()));
  return number;
}

}  // namespace serve::llm::jinja

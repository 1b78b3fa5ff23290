#include "ipc/command_line.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ipc {

void AddFlags(CLI::App* app, Options* options, const std::vector<std::string>& only) {
  for (const Flag& flag : Flags()) {
    if (!only.empty() && std::find(only.begin(), only.end(), flag.name) == only.end()) continue;
    const std::string name = absl::StrCat("--", flag.name);
    if (flag.toggle != nullptr) {
      app->add_flag_function(
          name, [&flag, options](int64_t) { options->*flag.toggle = true; }, flag.help);
      continue;
    }
    const std::string choices =
        flag.choices.empty() ? "" : absl::StrCat(" (", absl::StrJoin(flag.choices, ", "), ")");
    app->add_option_function<std::string>(
           name,
           [&flag, name, options](const std::string& value) {
             const absl::Status set = SetOption(flag, value, name, options);
             if (!set.ok()) throw CLI::ValidationError("", std::string(set.message()));
           },
           absl::StrCat(flag.help, choices))
        ->type_name(flag.value_name);
  }
}

std::string SentenceOf(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  while (!text.empty() && (text[0] == ':' || text[0] == ' ')) text.erase(0, 1);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = absl::StrCat("unknown argument ", absl::StrJoin(app.remaining(true), " "));
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return text;
  return absl::StrCat(text, "; see ", app.get_name(), " --help");
}

}  // namespace ipc

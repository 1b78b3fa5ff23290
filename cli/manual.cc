#include "cli/manual.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/commands.h"
#include "ipc/options.h"

namespace cli {
namespace {

// A line of roff that shows `text` as it is.
std::string Roff(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
}

std::string FlagEntry(const ipc::Flag& flag) {
  if (flag.toggle != nullptr)
    return absl::StrCat(".TP\n.B ", Roff(absl::StrCat("--", flag.name)), "\n", Roff(flag.help),
                        ".\n");
  const std::string choices =
      flag.choices.empty() ? "" : absl::StrCat(" One of ", absl::StrJoin(flag.choices, ", "), ".");
  return absl::StrCat(".TP\n.BI ", Roff(absl::StrCat("--", flag.name, "=")), " ", flag.value_name,
                      "\n", Roff(flag.help), ".", choices, "\n");
}

}  // namespace

std::string ManualPage() {
  std::string page =
      absl::StrCat(".TH LANEWAY 1 \"\" \"Laneway ", LANEWAY_VERSION,
                   "\"\n.SH NAME\nlaneway \\- share a GPU among unmodified CUDA programs\n"
                   ".SH COMMANDS\n");
  for (const CommandInfo& command : Commands()) {
    absl::StrAppend(&page, ".TP\n.B ",
                    Roff(absl::StrCat("laneway ", command.name, " ", command.synopsis)), "\n",
                    Roff(command.help), ".\n");
  }
  page +=
      ".SH FLAGS\nOf laneway run, record and serve, and of lanewayd. Each is also a key of "
      "config.toml.\n";
  for (const ipc::Flag& flag : ipc::Flags()) page += FlagEntry(flag);
  absl::StrAppend(
      &page,
      ".SH EXIT STATUS\nlaneway run ends with the program's own code, or 128 + the "
      "signal that ended it; 125 "
      "when Laneway failed, 126 when the program is not executable, 127 when there is "
      "none. Other commands: 0, "
      "1 on failure, 2 on wrong usage.\n.SH FILES\n.TP\n.I "
      "$XDG_CONFIG_HOME/laneway/config.toml\nConfiguration.\n"
      ".TP\n.I $LANEWAY_RUNTIME_DIR, else $XDG_RUNTIME_DIR/laneway, else "
      "/dev/shm/laneway\\-$UID\nSockets, lock, "
      "log/.\n.TP\n.I $XDG_STATE_HOME/laneway, else ~/.local/state/laneway\n"
      "history.jsonl and learned.jsonl: finished jobs, and what commands needed. Either "
      "may be removed. functions/: what laneway record keeps.\n");
  return page;
}

}  // namespace cli

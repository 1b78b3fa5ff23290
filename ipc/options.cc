#include "ipc/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include <toml++/toml.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ipc/bytes.h"
#include "ipc/calls/limits.h"
#include "ipc/job_options.h"
#include "ipc/replay_mode.h"

namespace ipc {
namespace {

absl::Status SetFromToml(const std::string& key, const toml::node& node, const std::string& path,
                         Options* options) {
  const std::string where = absl::StrCat(path, ": ", key);
  const Flag* const flag = FindFlag(key);
  if (flag == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " is no option; remove it or see lanewayd --help for the names (long flags)"));
  }
  if (const toml::value<std::string>* const text = node.as_string()) {
    return SetOption(*flag, text->get(), where, options);
  }
  if (const toml::value<int64_t>* const number = node.as_integer();
      number != nullptr && flag->number) {
    return SetOption(*flag, absl::StrCat(number->get()), where, options);
  }
  if (const toml::value<bool>* const toggle = node.as_boolean();
      toggle != nullptr && flag->toggle) {
    options->*flag->toggle = toggle->get();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(where, " must be ",
                                                 flag->number   ? "a whole number"
                                                 : flag->toggle ? "true or false"
                                                                : "a text in quotes"));
}

// In a sentence: control characters become '?'.
std::string OnOneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter >= 0 && letter < 0x20; }, '?');
  return text;
}

std::vector<Flag> PlaceFlags() {
  return {
      {"device",
       "DEVICE",
       "which device serves programs: auto takes a GPU when there is one",
       {"auto", "cuda", "soft"},
       &Options::device},
      {"transport",
       "TRANSPORT",
       "what carries calls: ring (shared memory) or zmq",
       {"ring", "zmq"},
       &Options::transport},
      {"mode",
       "MODE",
       "whose context a program works in: everybody's, one for it alone (contained), or its own",
       {"shared", "contained", "in-process"},
       &Options::mode},
  };
}

std::vector<Flag> TurnFlags() {
  return {
      {"policy",
       "POLICY",
       "who goes first: fair shares time equally, fifo is the order of arrival, srtf prefers the "
       "shortest rest",
       {"fair", "fifo", "srtf", "pack", "rr", "priority", "edf", "shares"},
       &Options::policy},
      {"lanes",
       "NUMBER",
       "how many programs run on a device at the same moment, at most",
       {},
       nullptr,
       &Options::lanes},
      {"slice",
       "MILLISECONDS",
       "for how long a program runs before another one's turn, where turns are shared",
       {},
       nullptr,
       &Options::slice_ms},
      {"max-iteration",
       "SECONDS",
       "a program that is to stop and comes to no boundary for so long is ended; 0 only reports it",
       {},
       nullptr,
       &Options::max_iteration_s},
      {"kill-timeout",
       "SECONDS",
       "a program that has ended and leaves work on the device for so long takes its worker along, "
       "once others have moved; 0 waits for ever",
       {},
       nullptr,
       &Options::kill_timeout_s},
      {"iterations-from",
       "SOURCE",
       "what tells where a program's iterations begin: auto looks at its work and at "
       "laneway_iteration(), nvtx at its NVTX ranges",
       {"auto", "nvtx", "header", "none"},
       &Options::iterations_from},
      {.name = "replay",
       .value_name = "WAY",
       .help = "runs of calls that iterations repeat: auto replays them while that measures "
               "faster, always in any case; verify executes every Nth iteration both ways, and "
               "compares",
       .text = &Options::replay,
       .of_program = true,
       .valid = [](const std::string& value) { return ParseReplayMode(value).has_value(); },
       .takes = "off, auto, always, verify or verify=N"},
  };
}

std::vector<Flag> JobFlags() {
  return {
      {.name = "priority",
       .value_name = "CLASS",
       .help = "the job's class under --policy=priority, 0 is the most urgent",
       .number = &Options::priority,
       .of_program = true,
       .number_max = kPriorityMax},
      {.name = "weight",
       .value_name = "WEIGHT",
       .help = "how much time each session of the job gets beside those of others under "
               "--policy=shares",
       .number = &Options::weight,
       .of_program = true,
       .number_max = kWeightMax,
       .number_min = 1},
      {.name = "deadline",
       .value_name = "TIME",
       .help = "when each iteration of the job is due, from when its work is there, under "
               "--policy=edf, as 20ms or 2s",
       .text = &Options::deadline,
       .of_program = true,
       .valid = [](const std::string& value) { return ParseDurationUs(value).has_value(); },
       .takes = "a time such as 20ms, 90s or 2h, up to a year"},
      {.name = "gang",
       .value_name = "NUMBER",
       .help = "so many sessions of the job run together or not at all; none runs before all have "
               "come",
       .number = &Options::gang,
       .of_program = true,
       .number_max = kGangMax},
      {.name = "gpus",
       .value_name = "DEVICES",
       .help = "the devices that the job sees: numbers such as 0 or 1,0, or any:2 for two that "
               "lanewayd chooses",
       .text = &Options::gpus,
       .of_program = true,
       .valid =
           [](const std::string& value) {
             SchedulingTerms terms;
             return ParseDevices(value, &terms);
           },
       .takes = "numbers of devices such as 0 or 1,0, or any, or any:2"},
      {.name = "label",
       .value_name = "TEXT",
       .help = "what people see beside the job, up to 63 bytes",
       .text = &Options::label,
       .of_program = true,
       .valid = [](const std::string& value) { return IsLabel(value); },
       .takes = "up to 63 bytes of text on one line"},
  };
}

std::vector<Flag> UserFlags() {
  return {
      {.name = "user-memory",
       .value_name = "SIZE",
       .help = "the most memory of each device that all programs of a user may have together; who "
               "needs more waits",
       .text = &Options::user_memory,
       .bytes = true},
      {.name = "user-sessions",
       .value_name = "NUMBER",
       .help = "how many sessions of a user are let in at the same time, the next one waits; 0 is "
               "no quota",
       .number = &Options::user_sessions,
       .number_max = limits::kSessionsMax},
  };
}

std::vector<Flag> DaemonFlags() {
  return {
      {"linger",
       "SECONDS",
       "how long lanewayd stays when no program uses the device and none of `laneway run` lives",
       {},
       nullptr,
       &Options::linger_s},
      {.name = "metrics",
       .value_name = "PORT",
       .help = "where lanewayd serves http://127.0.0.1:PORT/metrics for Prometheus; 0 is nowhere",
       .number = &Options::metrics_port,
       .number_max = 65535},
      {"runtime-dir",
       "DIR",
       "where the processes meet: sockets, lock, logs",
       {},
       &Options::runtime_dir},
      {"log-level",
       "LEVEL",
       "what lanewayd writes to its log",
       {"debug", "info", "warning", "error"},
       &Options::log_level},
  };
}

std::vector<Flag> MemoryFlags() {
  return {
      {.name = "memory",
       .value_name = "SIZE",
       .help = "the most memory of each device that the program may use, as 6GiB or 512MiB",
       .text = &Options::memory,
       .bytes = true,
       .of_program = true},
      {.name = "swap",
       .value_name = "SIZE",
       .help = "host memory that may hold device memory of waiting programs (half of it by "
               "default); when "
               "it is used up, a newcomer's request fails",
       .text = &Options::swap,
       .bytes = true},
      {"scrub",
       "WHEN",
       "when device memory is zeroed before a program gets it: tenants means that another user had "
       "it",
       {"tenants", "always"},
       &Options::scrub},
      {.name = "no-env",
       .value_name = "",
       .help = "set no variable of a framework: of its memory cache, of how it plans memory for "
               "--replay, or of the assembler that it runs",
       .of_program = true,
       .toggle = &Options::no_env},
      {.name = "no-sites",
       .value_name = "",
       .help = "never look at who calls to predict how long memory lives",
       .of_program = true,
       .toggle = &Options::no_sites},
      {.name = "no-lane",
       .value_name = "",
       .help = "never share the memory of iterations: all memory of the program is its own",
       .of_program = true,
       .toggle = &Options::no_lane},
  };
}

}  // namespace

const std::vector<Flag>& Flags() {
  static const std::vector<Flag>* const flags = [] {
    std::vector<Flag>* const all = new std::vector<Flag>();
    for (const std::vector<Flag>& some :
         {PlaceFlags(), TurnFlags(), JobFlags(), UserFlags(), DaemonFlags(), MemoryFlags()}) {
      all->insert(all->end(), some.begin(), some.end());
    }
    return all;
  }();
  return *flags;
}

const Flag* FindFlag(const std::string& name) {
  for (const Flag& flag : Flags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status SetOption(const Flag& flag, const std::string& value, const std::string& where,
                       Options* options) {
  if (flag.toggle != nullptr) {
    if (value != "true" && value != "false") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " is true or false, not '", value, "'"));
    }
    options->*flag.toggle = value == "true";
    return absl::OkStatus();
  }
  if (flag.number != nullptr) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < flag.number_min || number > flag.number_max) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " takes a whole number (", flag.value_name, "), ", flag.number_min,
                       " to ", flag.number_max, ", not '", value, "'"));
    }
    options->*flag.number = number;
    return absl::OkStatus();
  }
  if (flag.bytes && !ParseBytes(value).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " takes an amount of memory such as 6GiB or 512MiB, not '", value, "'"));
  }
  if (flag.valid != nullptr && !flag.valid(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " takes ", flag.takes, ", not '", OnOneLine(value), "'"));
  }
  if (!flag.choices.empty() &&
      std::find(flag.choices.begin(), flag.choices.end(), value) == flag.choices.end()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " does not know '", value, "'; use ",
                                                   absl::StrJoin(flag.choices, " or ")));
  }
  options->*flag.text = value;
  return absl::OkStatus();
}

int64_t BytesOption(const std::string& text, int64_t otherwise) {
  const std::optional<uint64_t> bytes = text.empty() ? std::nullopt : ParseBytes(text);
  return bytes.has_value() ? static_cast<int64_t>(*bytes) : otherwise;
}

std::string ConfigPath() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return absl::StrCat(config, "/laneway/config.toml");
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return absl::StrCat(home, "/.config/laneway/config.toml");
}

absl::Status ReadConfig(Options* options) {
  const std::string path = ConfigPath();
  if (path.empty() || (access(path.c_str(), F_OK) != 0 && errno == ENOENT)) return absl::OkStatus();
  if (access(path.c_str(), R_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno),
                                                   "; correct its permissions or remove it"));
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a file; remove it"));
  }
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.source().begin.line, ": ",
                                                   std::string(error.description()),
                                                   "; correct the line or remove the file"));
  }
  for (toml::table::iterator entry = table.begin(); entry != table.end(); ++entry) {
    const absl::Status set =
        SetFromToml(std::string(entry->first.str()), entry->second, path, options);
    if (!set.ok()) return set;
  }
  return absl::OkStatus();
}

std::vector<std::string> AsArguments(const Options& options) {
  const Options defaults;
  std::vector<std::string> arguments;
  for (const Flag& flag : Flags()) {
    if (flag.of_program) continue;
    if (flag.number != nullptr && options.*flag.number != defaults.*flag.number) {
      arguments.push_back(absl::StrCat("--", flag.name, "=", options.*flag.number));
    } else if (flag.text != nullptr && options.*flag.text != defaults.*flag.text) {
      arguments.push_back(absl::StrCat("--", flag.name, "=", options.*flag.text));
    }
  }
  return arguments;
}

}  // namespace ipc

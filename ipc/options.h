// What a person may choose, declared once: command lines, $XDG_CONFIG_HOME/laneway/config.toml (its
// keys are the long flags), help and the manual page are readings of one table. A choice on the
// command line wins over the file. Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ipc {

struct Options {
  std::string device = "auto";
  std::string transport = "ring";
  std::string mode = "shared";
  // Fair shares the device among all who run, so nobody waits for somebody else's end.
  std::string policy = "fair";
  std::string iterations_from = "auto";
  std::string replay = "off";  // ipc/replay_mode.h
  std::string runtime_dir;     // empty: as ipc/runtime_dir.h says
  std::string log_level = "info";
  bool no_env = false;    // set no variable of a framework
  bool no_sites = false;  // no call-site hashes
  bool no_lane = false;   // iterations lie in no lane
  int64_t linger_s = 60;
  int64_t lanes = 32;
  int64_t slice_ms = 20;
  int64_t max_iteration_s = 0;    // 0: no end
  int64_t kill_timeout_s = 60;    // 0: no end
  std::string memory;             // of a job, "6GiB"; empty: no limit
  std::string swap;               // host memory for swapped sessions; empty: half of the machine's
  std::string scrub = "tenants";  // when device memory is zeroed before it is given out
  int64_t metrics_port = 0;       // on 127.0.0.1; 0: none
  // Of a job (ipc/scheduling_terms.h).
  int64_t priority = 1;
  int64_t weight = 100;
  int64_t gang = 0;      // 0: no gang
  std::string deadline;  // "20ms"; empty: none
  std::string gpus;      // "0,1" or "any:2"; empty: all
  std::string label;
  // Of each user.
  std::string user_memory;    // on each device; empty: no quota
  int64_t user_sessions = 0;  // 0: no quota
};

struct Flag {
  const char* name;                      // without the dashes; the key in config.toml
  const char* value_name;                // for help: DEVICE, SECONDS
  const char* help;                      // one sentence, lower case, no stop
  std::vector<std::string> choices;      // empty: any text
  std::string Options::*text = nullptr;  // exactly one of these three
  int64_t Options::*number = nullptr;
  bool bytes = false;       // a text that ParseBytes() understands
  bool of_program = false;  // of the program that is run, not of the daemon that serves it
  int64_t number_max = 365 * 24 * 3600;  // a year of seconds
  bool Options::*toggle = nullptr;       // takes no value; of `laneway run` alone
  int64_t number_min = 0;
  // For a text that is neither a choice nor a number of bytes: whether the value is legal, and a
  // description of legal values.
  bool (*valid)(const std::string& value) = nullptr;
  const char* takes = nullptr;  // "a time such as 20ms": after "takes"
};

const std::vector<Flag>& Flags();
const Flag* FindFlag(const std::string& name);

// InvalidArgument, in one sentence with the remedy, for a value that the flag does not take.
// `where` begins the sentence: "--device" or "config.toml: device".
absl::Status SetOption(const Flag& flag, const std::string& value, const std::string& where,
                       Options* options);

// The value of a flag with `bytes`; `otherwise` when it is empty.
int64_t BytesOption(const std::string& text, int64_t otherwise);

std::string ConfigPath();

// Reads ConfigPath() into `options`; no file is fine. InvalidArgument, one sentence, for an
// unreadable file, an unknown key or value.
absl::Status ReadConfig(Options* options);

// "--device=auto" ...: what differs from the defaults, for a daemon to be started.
std::vector<std::string> AsArguments(const Options& options);

}  // namespace ipc

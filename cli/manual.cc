#include "cli/manual.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
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

// Commands that change how jobs run.
std::vector<CommandInfo> SteeringCommands() {
  return {
      {"pause", "JOB", "Stop a job at its next boundary, until it is resumed", {"runtime-dir"}},
      {"resume", "JOB", "Let a paused or evicted job go on", {"runtime-dir"}},
      {"evict",
       "JOB",
       "Pause a job and move its device memory to the host, until it is resumed",
       {"runtime-dir"}},
      {"limit",
       "JOB SIZE",
       "Bound the device memory of a job from now on; what it holds already stays",
       {"runtime-dir"}},
      {"share",
       "JOB WEIGHT",
       "Give the sessions of a job another weight from now on: their part of the time under "
       "--policy=shares",
       {"runtime-dir"}},
      {"priority",
       "JOB CLASS",
       "Put a job into another class from now on, 0 is the most urgent, under --policy=priority",
       {"runtime-dir"}},
      {"policy", "[NAME]", "Show the policy, or switch to another at once", {"runtime-dir"}},
  };
}

// Commands that show what jobs do, and change nothing.
std::vector<CommandInfo> WatchingCommands() {
  return {
      {"status", "[--json]", "Show daemon, devices, jobs and recent faults", {"runtime-dir"}},
      {"ps", "", "List the sessions: a line per process that uses the device", {"runtime-dir"}},
      {"top",
       "[--once] [--json]",
       "Show live figures per session: state, lane, iterations per second, their p50 and p99 "
       "times, waits and memory; q ends it",
       {"runtime-dir"}},
      {"why",
       "[--json] [JOB]",
       "Say what a job waits for, and for whom; without a job, of all",
       {"runtime-dir"}},
      {"trace",
       "[--out FILE] [JOB [--calls [--for TIME]]]",
       "Write what happened lately as a timeline that ui.perfetto.dev opens: who held which lane, "
       "iterations, waits and swaps. With --calls trace a running job for a while, and add its "
       "calls, what the worker served, what the device did by stream, and waits",
       {"runtime-dir"}},
      {"graph",
       "[--dot FILE|--svg FILE|--json] [--for TIME] JOB",
       "Show one iteration of a running job as the graph of what depends on what: its operations, "
       "how many could run at the same time, the critical path and the longest kernels",
       {"runtime-dir"}},
      {"history",
       "[-n COUNT] [--json]",
       "List finished jobs: command, iterations and their times, waits, peak memory, exit code",
       {"runtime-dir"}},
      {"report",
       "--html FILE",
       "Write one page with the timeline of lanes and sessions, figures and finished jobs",
       {"runtime-dir"}},
  };
}

// Commands of recorded functions.
std::vector<CommandInfo> FunctionCommands() {
  return {
      {"record",
       "[FLAGS] --name NAME -- PROGRAM [ARGUMENTS] | --show NAME",
       "Run a program, and keep its last loop that repeats as a function that answers without the "
       "program; --show prints the function's inputs and outputs",
       {}},
      {"serve", "[FLAGS] NAME", "Answer requests for a recorded function, on a local socket", {}},
      {"call",
       "NAME [--input [INPUT=]FILE]... [--output [OUTPUT=]FILE]...",
       "Ask a served function once: inputs are .npy files, outputs are printed or written",
       {"runtime-dir"}},
  };
}

std::vector<CommandInfo> OtherCommands() {
  return {
      {"upgrade-worker",
       "",
       "Move running programs to a new worker process, each at its next boundary",
       {"runtime-dir"}},
      {"stop",
       "[--force]",
       "End daemon, keeper and workers; refused while programs run, unless forced",
       {"runtime-dir"}},
      {"doctor",
       "",
       "Look for what stands in the way, and say what to do about it",
       {"runtime-dir"}},
      {"calls",
       "[PATTERN]",
       "List the CUDA calls whose names contain PATTERN, and how each is served",
       {"runtime-dir"}},
      {"kernels",
       "[--json] FILE|JOB [--for TIME]",
       "Say what each kernel of a file (PTX, a fat binary, a program), or of the modules that a "
       "running job has loaded, reads, writes and updates, by parameter, or why that is not known. "
       "With --for count the job's launches by kernel, the longest first",
       {"runtime-dir"}},
      {"model",
       "show FILE [--json]",
       "Say what the file of a language model holds: architecture, sizes, types of tensors, "
       "tokenizer, context, and what would be refused and why",
       {"runtime-dir"}},
      {"sim",
       "JOBS.csv [--policy NAMES|all] [--html FILE] [--timeline FILE] [--json]",
       "Run the scheduler in virtual time on jobs from a file, and say how long each took. "
       "laneway sim serving TRACE|generated --costs TABLE does so for the batchers of language "
       "models, on requests; laneway sim serving --help lists its flags",
       {"runtime-dir"}},
      {"version", "", "Print the version", {"runtime-dir"}},
      {"man", "", "Print the manual page (laneway man | man -l -)", {"runtime-dir"}},
  };
}

}  // namespace

const std::vector<CommandInfo>& Commands() {
  static const std::vector<CommandInfo>* const commands = [] {
    std::vector<CommandInfo>* const all = new std::vector<CommandInfo>{
        {"run",
         "[FLAGS] -- PROGRAM [ARGUMENTS]",
         "Run a program as a client; starts lanewayd when none runs, and ends with the program's "
         "exit code",
         {}},
    };
    for (const std::vector<CommandInfo>& some :
         {WatchingCommands(), SteeringCommands(), FunctionCommands(), OtherCommands()}) {
      all->insert(all->end(), some.begin(), some.end());
    }
    return all;
  }();
  return *commands;
}

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

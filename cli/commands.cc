#include "cli/commands.h"

namespace cli {
namespace {

// Commands that change how jobs run.
std::vector<CommandInfo> SteeringCommands() {
  return {
      {"pause", "JOB", "Stop a job at its next boundary, until it is resumed", {"runtime-dir"}},
      {"resume", "JOB", "Let a paused or evicted job go on", {"runtime-dir"}},
      {"evict",
       "[--idle] JOB",
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
      {"status",
       "[--json]",
       "Show daemon, devices, jobs, served models and recent faults",
       {"runtime-dir"}},
      {"ps", "", "List the sessions: a line per process that uses the device", {"runtime-dir"}},
      {"top",
       "[--once] [--json]",
       "Show live figures per session: state, lane, iterations per second, their p50 and p99 "
       "times, waits and memory; and per served model: requests, tokens per second and memory of "
       "keys and values. q ends it",
       {"runtime-dir"}},
      {"why",
       "[--json] [JOB|REQUEST]",
       "Say what a job waits for, and for whom; or what a request to a served model waits for, by "
       "the id in its answer. Without either, of all",
       {"runtime-dir"}},
      {"trace",
       "[--out FILE] [JOB [--calls [--for TIME]]]",
       "Write what happened lately as a timeline that ui.perfetto.dev opens: who held which lane, "
       "iterations, waits and swaps; and of served models: steps, and each request from its "
       "arrival "
       "to its end. With --calls trace a running job for a while, and add its "
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
      {"serve",
       "[FLAGS] NAME | [FLAGS] MODEL...",
       "Answer for a recorded function, on a local socket, or for language models, over HTTP",
       {}},
      {"load",
       "URL [--rate PER_S] [--burstiness SHAPE] [--trace FILE] [--goodput GOALS] [--json] ...",
       "Send requests to a server of OpenAI's API, and say how long first tokens, further tokens "
       "and answers took. laneway load --help lists its flags",
       {"runtime-dir"}},
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
       "show PATH [--json]",
       "Say what a language model holds: architecture, sizes, types of tensors, tokenizer, "
       "context, and what would be refused and why. PATH is a .gguf file, or a directory with "
       "config.json, tokenizer.json and safetensors files",
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

}  // namespace cli

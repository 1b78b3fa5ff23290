// laneway: what people type. Talks to lanewayd by control messages only.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/doctor.h"
#include "cli/fronts.h"
#include "cli/graph.h"
#include "cli/history.h"
#include "cli/kernels.h"
#include "cli/live_report.h"
#include "cli/load/command.h"
#include "cli/manual.h"
#include "cli/model.h"
#include "cli/record.h"
#include "cli/request.h"
#include "cli/run.h"
#include "cli/serve.h"
#include "cli/show.h"
#include "cli/sim/command.h"
#include "cli/steer.h"
#include "cli/top.h"
#include "cli/trace.h"
#include "cli/why.h"
#include "ipc/calls_text.h"
#include "ipc/command_line.h"
#include "ipc/options.h"
#include "ipc/runtime_dir.h"
#include "ipc/scheduling_terms.h"
#include "ipc/socket.h"

namespace cli {
namespace {

constexpr int kUsageExitCode = 2;
constexpr const char* kSteering[] = {"pause", "resume", "evict", "limit", "share", "priority"};
constexpr int64_t kStopTimeoutUs = 20'000'000;

// The daemon knows sessions, and the fronts beside it know models.
int Status(const Request& request) {
  const bool sessions = request.command == "ps";
  const absl::StatusOr<std::string> reply =
      AskDaemon(request, sessions ? R"({"command":"top"})" : R"({"command":"status"})");
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  if (sessions) {
    std::fputs(SessionsText(*reply).c_str(), stdout);
    return 0;
  }
  const std::string status = WithModels(*reply, DirOf(request));
  std::fputs(request.json ? absl::StrCat(status, "\n").c_str() : StatusText(status).c_str(),
             stdout);
  return 0;
}

// A session moves at its next boundary, and some take long to get there.
constexpr int64_t kUpgradeTimeoutUs = 120'000'000;

// Its pidfd, taken before it is told to stop. Invalid when it has ended already.
ipc::UniqueFd DaemonPidfd(const std::string& dir) {
  std::ifstream lock(ipc::LockPath(dir));
  pid_t pid = 0;
  lock >> pid;
  absl::StatusOr<ipc::UniqueFd> pidfd = ipc::OpenPidfd(pid);
  return pidfd.ok() ? std::move(*pidfd) : ipc::UniqueFd();
}

void WaitForEnd(const ipc::UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};  // poll ignores an invalid descriptor
  poll(&entry, pidfd.valid() ? 1 : 0, pidfd.valid() ? kStopTimeoutUs / 1000 : 0);
}

int Stop(const Request& request) {
  const std::string dir = DirOf(request);
  if (const absl::Status replaced = ReplaceLostDaemon(request.options); !replaced.ok()) {
    return Say(1, std::string(replaced.message()));
  }
  const ipc::UniqueFd daemon = DaemonPidfd(dir);
  const absl::StatusOr<std::string> reply =
      Ask(dir, request.force ? R"({"command":"stop","force":true})" : R"({"command":"stop"})",
          kStopTimeoutUs);
  if (absl::IsNotFound(reply.status())) {
    std::printf("nothing runs in %s\n", dir.c_str());
    return 0;
  }
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  WaitForEnd(daemon);
  return 0;
}

int UpgradeWorker(const Request& request) {
  const absl::StatusOr<std::string> reply =
      Ask(DirOf(request), R"({"command":"upgrade-worker"})", kUpgradeTimeoutUs);
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  const nlohmann::json answer = nlohmann::json::parse(*reply);
  std::printf("%d moved, %d kept until they end\n", answer.value("moved", 0),
              answer.value("kept", 0));
  return 0;
}

int Dispatch(const Request& request, const sim::Request& simulation, const load::Request& load) {
  if (request.command == "run") return Run(request.options, request.program);
  if (request.command == "status" || request.command == "ps") return Status(request);
  if (request.command == "top") return Top(request);
  if (request.command == "why") return Why(request);
  if (request.command == "policy") return Policy(request);
  if (request.command == "trace") return Trace(request);
  if (request.command == "graph") return Graph(request);
  if (request.command == "sim") return sim::Simulate(simulation);
  if (request.command == "history") return History(request);
  if (request.command == "report") return Report(request);
  for (const char* const name : kSteering) {
    if (request.command == name) return Steer(request);
  }
  if (request.command == "upgrade-worker") return UpgradeWorker(request);
  if (request.command == "stop") return Stop(request);
  if (request.command == "doctor") return Doctor(request.options);
  if (request.command == "kernels") return Kernels(request);
  if (request.command == "model") return ShowModel(request);
  if (request.command == "record") return Record(request);
  if (request.command == "serve") return Serve(request);
  if (request.command == "load") return load::Load(load);
  if (request.command == "call") return CallFunction(request);
  if (request.command == "calls") {
    std::fputs(ipc::CallsText(request.name).c_str(), stdout);
    return 0;
  }
  if (request.command == "man") {
    std::fputs(ManualPage().c_str(), stdout);
    return 0;
  }
  std::printf("laneway %s\n", LANEWAY_VERSION);
  return 0;
}

// Everything after `--`, or from the first word that is no flag, is the program's; CLI11 never sees
// it.
void SplitProgram(std::vector<std::string>* words, std::vector<std::string>* program) {
  if (words->size() < 2 || ((*words)[0] != "run" && (*words)[0] != "record")) return;
  size_t i = 1;
  while (i < words->size() && (*words)[i] != "--" && (*words)[i][0] == '-') {
    const std::string& word = (*words)[i];
    const ipc::Flag* const flag = word.size() > 2 ? ipc::FindFlag(word.substr(2)) : nullptr;
    const bool of_record = word == "--name" || word == "--show";
    const bool takes_next = of_record || (flag != nullptr && flag->toggle == nullptr);
    i += takes_next ? 2 : 1;
  }
  i = std::min(i, words->size());
  const size_t first = i < words->size() && (*words)[i] == "--" ? i + 1 : i;
  program->assign(words->begin() + static_cast<ptrdiff_t>(first), words->end());
  words->resize(i);
}

// Declares the options of the commands for recorded functions.
void DeclareFunctions(CLI::App* app, Request* request) {
  CLI::App* const record = app->get_subcommand("record");
  record->add_option("--name", request->name, "what the function is to be called");
  record->add_option("--show", request->function.show,
                     "print the manifest of a recorded function instead");
  CLI::App* const serve = app->get_subcommand("serve");
  serve
      ->add_option("TARGET", request->function.targets,
                   "a recorded function, or models: .gguf files, directories with config.json")
      ->required();
  serve::llm::AddServeFlags(serve, &request->function.models);
  CLI::App* const call = app->get_subcommand("call");
  call->add_option("NAME", request->name, "the function")->required();
  call->add_option("--input", request->function.inputs,
                   "[INPUT=]FILE: a .npy file for an input; its name, where there are several");
  call->add_option(
      "--output", request->function.outputs,
      "[OUTPUT=]FILE: where an output goes as a .npy file; without it all are printed");
}

// `show` is a word of its own: there will be more to do with a model than to look into its files.
void DeclareModel(CLI::App* model, Request* request) {
  CLI::App* const show = model->add_subcommand("show", "print the contents of a model's files");
  model->require_subcommand(1);
  show->add_option("PATH", request->path, "a .gguf file, or a directory with config.json")
      ->required();
  show->add_flag("--json", request->json, "print JSON, for programs");
}

// A graph is shown in one form at a time.
void DeclareGraph(CLI::App* graph, Request* request) {
  graph->add_option("JOB", request->id, "the job's number")->required();
  CLI::Option* const dot =
      graph->add_option("--dot", request->graph.dot, "write the graph for Graphviz to this file");
  CLI::Option* const svg =
      graph->add_option("--svg", request->graph.svg, "draw the graph into this file");
  dot->excludes(svg);
  CLI::Option* const json = graph->get_option("--json");
  json->excludes(dot)->excludes(svg);
  graph->add_option("--for", request->watched.period,
                    "for how long to wait for an iteration; 10s without it");
}

void Declare(CLI::App* app, Request* request, sim::Request* simulation, load::Request* load) {
  for (const CommandInfo& info : Commands()) {
    CLI::App* const command = app->add_subcommand(info.name, info.help);
    command->footer(absl::StrCat("laneway ", info.name, " ", info.synopsis));
    ipc::AddFlags(command, &request->options, info.flags);
    command->callback([request, &info] { request->command = info.name; });
  }
  for (const char* const name : {"status", "top", "why", "history", "kernels", "graph"}) {
    app->get_subcommand(name)->add_flag("--json", request->json, "print JSON, for programs");
  }
  app->get_subcommand("top")->add_flag("--once", request->once, "print once and end");
  app->get_subcommand("why")->add_option(
      "JOB|REQUEST", request->name,
      "a job's number, or a request to a served model by the id in its answer; all without it");
  app->get_subcommand("history")->add_option("-n", request->count, "only the last so many jobs");
  app->get_subcommand("report")->add_option("--html", request->out, "the file to write");
  for (const char* const name : kSteering) {
    app->get_subcommand(name)->add_option("JOB", request->id, "the job's number")->required();
  }
  app->get_subcommand("evict")->add_flag(
      "--idle", request->idle,
      "pause nothing: the memory of a job that rests comes back with the job's next work");
  app->get_subcommand("limit")
      ->add_option("SIZE", request->name, "6GiB, 512MiB, ..., or none")
      ->required();
  app->get_subcommand("share")
      ->add_option("WEIGHT", request->count, absl::StrCat("1 to ", ipc::kWeightMax))
      ->required();
  app->get_subcommand("priority")
      ->add_option("CLASS", request->count, absl::StrCat("0 to ", ipc::kPriorityMax))
      ->required();
  // Without --calls the timeline is drawn from the daemon's journal, so a time makes no sense.
  CLI::App* const trace = app->get_subcommand("trace");
  trace->add_option("JOB", request->id, "only this job");
  trace->add_option("--out", request->out, "the file to write; standard output without it");
  CLI::Option* const calls = trace->add_flag(
      "--calls", request->watched.calls,
      "trace each call of the job from now on: client, worker, device by stream, and waits");
  trace->add_option("--for", request->watched.period, "with --calls: for how long; 2s without it")
      ->needs(calls);
  app->get_subcommand("policy")->add_option("NAME", request->name, "the policy to switch to");
  app->get_subcommand("stop")->add_flag("--force", request->force,
                                        "end running programs' sessions, too");
  app->get_subcommand("calls")->add_option("PATTERN", request->name, "a part of the name");
  CLI::App* const kernels = app->get_subcommand("kernels");
  kernels
      ->add_option("FILE|JOB", request->path,
                   "PTX, a fat binary, a program or a library; or the number of a running job")
      ->required();
  kernels->add_option("--for", request->watched.period,
                      "of a job: count for so long how often each kernel is launched");
  DeclareGraph(app->get_subcommand("graph"), request);
  DeclareFunctions(app, request);
  DeclareModel(app->get_subcommand("model"), request);
  sim::AddFlags(app->get_subcommand("sim"), simulation);
  load::AddFlags(app->get_subcommand("load"), load);
}

bool IsCommand(const std::string& word) {
  const std::vector<CommandInfo>& all = Commands();
  return std::any_of(all.begin(), all.end(),
                     [&](const CommandInfo& info) { return word == info.name; });
}

int Main(std::vector<std::string> words) {
  Request request;
  SplitProgram(&words, &request.program);
  const bool is_run = !words.empty() && words[0] == "run";
  const int failure = is_run ? kLanewayFailed : kUsageExitCode;
  CLI::App app("Unmodified CUDA programs share a GPU.", "laneway");
  app.set_version_flag("--version", std::string("laneway ") + LANEWAY_VERSION);
  app.require_subcommand(1);
  const absl::Status config = ipc::ReadConfig(&request.options);
  if (!config.ok() && (words.empty() || words[0] != "doctor")) {  // who tells it as a finding
    return Say(failure, std::string(config.message()));
  }
  sim::Request simulation;
  load::Request load;
  Declare(&app, &request, &simulation, &load);
  if (!words.empty() && words[0].rfind('-', 0) != 0 && !IsCommand(words[0])) {
    return Say(failure, absl::StrCat("there is no command ", words[0], "; see laneway --help"));
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return Say(failure, ipc::SentenceOf(app, error));
  }
  if (is_run && request.program.empty()) {
    return Say(failure, "run what? laneway run -- PROGRAM [ARGUMENTS]");
  }
  return Dispatch(request, simulation, load);
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
  return cli::Main(std::vector<std::string>(argv + 1, argv + argc));
}

#include "cli/show.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/table.h"

namespace cli {
namespace {

using Json = nlohmann::json;

std::string Number(const Json& value) { return absl::StrCat(value.get<uint64_t>()); }

std::string DeviceLine(const Json& device) {
  return absl::StrCat("device ", Number(device["ordinal"]), "  ", device["name"].get<std::string>(),
                      " (", device["kind"].get<std::string>(),
                      "): ", BytesText(device["used_bytes"].get<uint64_t>()), " used, ",
                      BytesText(device["free_bytes"].get<uint64_t>()), " free of ",
                      BytesText(device["capacity_bytes"].get<uint64_t>()), "\n");
}

std::string ProgramsOf(const Json& job) {
  std::string text;
  for (const Json& program : job["programs"]) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", Printable(program.get<std::string>()));
  }
  return text;
}

// What the programs say of it themselves is less by what they have mapped and do not use.
std::string MemoryText(const Json& job) {
  const uint64_t empty = job.value("empty_bytes", uint64_t{0});
  return absl::StrCat(BytesText(job["device_bytes"].get<uint64_t>()),
                      empty == 0 ? "" : absl::StrCat(" (", BytesText(empty), " empty)"));
}

std::string JobsText(const Json& jobs) {
  if (jobs.empty()) return "no jobs\n";
  Rows rows = {{"JOB", "PROGRAM", "SESSIONS", "DEVICE MEMORY"}};
  for (const Json& job : jobs) {
    rows.push_back({Number(job["id"]), ProgramsOf(job), Number(job["sessions"]), MemoryText(job)});
  }
  return Table(rows, 2);
}

std::string FaultsText(const Json& faults) {
  if (faults.empty()) return {};
  std::string text = "\nrecent faults, newest last:\n";
  for (const Json& fault : faults) {
    const std::string program = fault["program"].get<std::string>();
    absl::StrAppend(
        &text, "  error ", Number(fault["code"]),
        program.empty() ? "" : absl::StrCat(", ", program, " (job ", Number(fault["job"]), ")"),
        ": ", fault["text"].get<std::string>(), "\n");
  }
  return text;
}

}  // namespace

std::string StatusText(const std::string& status_json) {
  const Json status = Json::parse(status_json);
  const Json& daemon = status["daemon"];
  std::string text =
      absl::StrCat("Laneway ", status["version"].get<std::string>(), "  daemon ",
                   Number(daemon["pid"]), " in ", daemon["runtime_dir"].get<std::string>(),
                   "  policy ", daemon["policy"].get<std::string>(), "\n");
  for (const Json& device : status["devices"]) text += DeviceLine(device);
  const Json& keeper = status["keeper"];
  absl::StrAppend(&text, "keeper ", Number(keeper["pid"]), " ", keeper["state"].get<std::string>(),
                  "\n");
  for (const Json& worker : status["workers"]) {
    absl::StrAppend(&text, "worker ", Number(worker["number"]), "  pid ", Number(worker["pid"]),
                    " ", worker["state"].get<std::string>(),
                    ", sessions: ", Number(worker["sessions"]), "\n");
  }
  return absl::StrCat(text, "\n", JobsText(status["jobs"]), FaultsText(status["faults"]));
}

std::string SessionsText(const std::string& top_json) {
  const Json top = Json::parse(top_json);
  Rows rows = {{"JOB", "PROGRAM", "STATE", "SESSION", "PID", "LANE", "ITERATIONS", "DEVICE MEMORY",
                "OPS", "RECOVERABLE"}};
  for (const Json& session : top["sessions"]) {
    const std::string wait = session["wait"].get<std::string>();
    const std::string state = session["state"].get<std::string>();
    rows.push_back(
        {Number(session["job"]), Printable(session["program"].get<std::string>()),
         wait.empty() ? state : absl::StrCat(state, ": ", wait), Number(session["session"]),
         Number(session["pid"]), Number(session["lane"]), Number(session["iterations"]),
         BytesText(session["device_bytes"].get<uint64_t>()), Number(session["ops"]),
         session.value("recoverable", true) ? std::string("yes")
                                            : absl::StrCat("no: ", session.value("obstacle", ""))});
  }
  return Table(rows, 3);
}

}  // namespace cli

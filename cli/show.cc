#include "cli/show.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/models_text.h"
#include "cli/table.h"
#include "cli/terms_text.h"

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

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

const Json& TermsOf(const Json& object) {
  static const Json kNone;
  const Json::const_iterator found = object.find("terms");
  return found == object.end() ? kNone : *found;
}

// The line of a user's quotas, for `laneway status`; empty when the daemon has set none.
std::string QuotaLine(const Json& daemon) {
  const uint64_t memory = daemon.value("user_memory_bytes", uint64_t{0});
  const uint64_t sessions = daemon.value("user_sessions", uint64_t{0});
  std::vector<std::string> parts;
  if (memory != 0) parts.push_back(absl::StrCat(BytesText(memory), " of each device"));
  if (sessions != 0) parts.push_back(absl::StrCat(sessions, " sessions at a time"));
  return parts.empty() ? "" : absl::StrCat("a user may have ", absl::StrJoin(parts, " and "), "\n");
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
  Rows rows = {{"JOB", "PROGRAM", "TERMS", "SESSIONS", "DEVICE MEMORY"}};
  for (const Json& job : jobs) {
    rows.push_back({Number(job["id"]), WithLabel(ProgramsOf(job), TermsOf(job)),
                    OrDash(TermsText(TermsOf(job))), Number(job["sessions"]), MemoryText(job)});
  }
  return Table(rows, 3);
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
  text += QuotaLine(daemon);
  for (const Json& device : status["devices"]) text += DeviceLine(device);
  const Json& keeper = status["keeper"];
  absl::StrAppend(&text, "keeper ", Number(keeper["pid"]), " ", keeper["state"].get<std::string>(),
                  "\n");
  for (const Json& worker : status["workers"]) {
    absl::StrAppend(&text, "worker ", Number(worker["number"]), "  pid ", Number(worker["pid"]),
                    " ", worker["state"].get<std::string>(),
                    ", sessions: ", Number(worker["sessions"]), "\n");
  }
  const std::string models = ModelsText(status.value("models", Json::array()));
  return absl::StrCat(text, "\n", JobsText(status["jobs"]), models.empty() ? "" : "\n", models,
                      FaultsText(status["faults"]));
}

std::string SessionsText(const std::string& top_json) {
  const Json top = Json::parse(top_json);
  if (top["sessions"].empty()) return "no program uses the device\n";
  Rows rows = {{"JOB", "PROGRAM", "STATE", "TERMS", "SESSION", "PID", "DEVICE", "LANE",
                "ITERATIONS", "DEVICE MEMORY", "OPS", "RECOVERABLE"}};
  for (const Json& session : top["sessions"]) {
    const std::string wait = session["wait"].get<std::string>();
    const std::string state = session["state"].get<std::string>();
    rows.push_back(
        {Number(session["job"]), WithLabel(session["program"].get<std::string>(), TermsOf(session)),
         wait.empty() ? state : absl::StrCat(state, ": ", wait),
         OrDash(TermsText(TermsOf(session))), Number(session["session"]), Number(session["pid"]),
         absl::StrCat(session.value("device", 0)), Number(session["lane"]),
         Number(session["iterations"]), BytesText(session["device_bytes"].get<uint64_t>()),
         Number(session["ops"]),
         session.value("recoverable", true) ? std::string("yes")
                                            : absl::StrCat("no: ", session.value("obstacle", ""))});
  }
  return Table(rows, 4);
}

}  // namespace cli

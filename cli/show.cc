#include "cli/show.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell; the first `left` columns are texts, the others numbers.
std::string Table(const Rows& rows, size_t left) {
  std::vector<size_t> widths(rows[0].size());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i < left ? row[i] + padding : padding + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

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
    absl::StrAppend(&text, text.empty() ? "" : ", ", program.get<std::string>());
  }
  return text;
}

std::string JobsText(const Json& jobs) {
  if (jobs.empty()) return "no jobs\n";
  Rows rows = {{"JOB", "PROGRAM", "SESSIONS", "DEVICE MEMORY"}};
  for (const Json& job : jobs) {
    rows.push_back({Number(job["id"]), ProgramsOf(job), Number(job["sessions"]),
                    BytesText(job["device_bytes"].get<uint64_t>())});
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

std::string BytesText(uint64_t bytes) {
  if (bytes == 0) return "0";
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return whole ? absl::StrFormat("%.0f %s", value, kUnits[unit])
               : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

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

std::string SessionsText(const std::string& status_json) {
  const Json status = Json::parse(status_json);
  Rows rows = {{"ID", "PROGRAM", "STATE", "PID", "JOB", "DEVICE MEMORY", "OPS"}};
  for (const Json& session : status["sessions"]) {
    rows.push_back({Number(session["id"]), session["program"].get<std::string>(),
                    session["state"].get<std::string>(), Number(session["pid"]),
                    Number(session["job"]), BytesText(session["device_bytes"].get<uint64_t>()),
                    Number(session["ops"])});
  }
  return Table(rows, 3);
}

}  // namespace cli

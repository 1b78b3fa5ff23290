#include "cli/top_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/models_text.h"
#include "cli/table.h"
#include "cli/terms_text.h"

namespace cli {
namespace {

using Json = nlohmann::json;

uint64_t Number(const Json& object, const char* name) { return object.value(name, uint64_t{0}); }

std::string OrDash(uint64_t number) { return number == 0 ? "-" : absl::StrCat(number); }

// The share of launches, or what stands in the way.
std::string ReplayText(const Json& replay) {
  if (!replay.is_object()) return "-";
  const std::string state = replay.value("state", "off");
  if (state == "off") return "-";
  const uint64_t launches = Number(replay, "launches");
  if (state != "replaying" || launches == 0) return Printable(state);
  return absl::StrFormat("%.0f %%", 100.0 * static_cast<double>(Number(replay, "replayed")) /
                                        static_cast<double>(launches));
}

std::vector<std::string> RowOf(const Json& session) {
  const uint64_t iterations = Number(session, "iterations");
  const Json terms = session.value("terms", Json());
  const std::string terms_text = TermsText(terms);
  const std::string wait = session.value("wait", "");
  return {
      absl::StrCat(Number(session, "job")),
      WithLabel(session.value("program", ""), terms),
      Printable(wait.empty() ? session.value("state", "") : wait),
      terms_text.empty() ? "-" : terms_text,
      OrDash(Number(session, "rank")),
      absl::StrCat(Number(session, "device")),
      OrDash(Number(session, "lane")),
      iterations == 0 ? "-" : absl::StrFormat("%.1f", session.value("iterations_per_second", 0.0)),
      absl::StrCat(iterations),
      TimeText(Number(session, "p50_us")),
      TimeText(Number(session, "p99_us")),
      TimeText(Number(session, "waited_us") + Number(session, "waiting_us")),
      ReplayText(session.value("replay", Json())),
      BytesText(Number(session, "persistent_bytes")),
      BytesText(Number(session, "ephemeral_bytes")),
      BytesText(Number(session, "device_bytes"))};
}

std::string HeadOf(const Json& top) {
  std::string text = absl::StrCat("laneway top  policy ", top.value("policy", ""),
                                  ", sessions: ", top["sessions"].size(), "\n");
  for (const Json& device : top["devices"]) {
    absl::StrAppend(&text, "device ", Number(device, "ordinal"), "  ",
                    Printable(device.value("name", "")), ": ",
                    BytesText(Number(device, "used_bytes")), " of ",
                    BytesText(Number(device, "capacity_bytes")), " used, ",
                    Number(device, "busy_percent"), " % busy\n");
  }
  return text + "\n";
}

}  // namespace

std::string TopText(const std::string& top_json, size_t width, size_t height) {
  const Json top = Json::parse(top_json);
  Rows rows = {{"JOB", "PROGRAM", "STATE", "TERMS", "RANK", "DEVICE", "LANE", "ITER/S",
                "ITERATIONS", "P50", "P99", "WAITED", "REPLAYED", "PERSISTENT", "EPHEMERAL",
                "DEVICE MEMORY"}};
  for (const Json& session : top["sessions"]) rows.push_back(RowOf(session));
  const std::string models = ModelsText(top.value("models", Json::array()));
  const std::string text = absl::StrCat(HeadOf(top), models, models.empty() ? "" : "\n",
                                        rows.size() == 1 ? "no program runs\n" : Table(rows, 4));
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // after the last line's end
  if (height != 0 && lines.size() > height) {
    const size_t hidden = lines.size() - height + 1;
    lines.resize(height - 1);
    lines.push_back(absl::StrCat("... and ", hidden, " more"));
  }
  for (std::string& line : lines)
    line.resize(std::min(line.size(), width == 0 ? line.size() : width));
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

}  // namespace cli

#include "cli/history.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "cli/table.h"
#include "ipc/state_dir.h"

namespace cli {
namespace {

constexpr size_t kCommandColumns = 60;

std::string LocalTime(int64_t seconds) {
  const time_t time = static_cast<time_t>(seconds);
  tm parts{};
  char text[32];
  localtime_r(&time, &parts);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts));
}

std::string Short(const std::string& command) {
  const std::string text = Printable(command);
  if (text.size() <= kCommandColumns) return text;
  size_t end = kCommandColumns - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // inside UTF-8
  return text.substr(0, end) + "...";
}

std::string ExitText(const ipc::HistoryRecord& record) {
  if (record.exit == ipc::kExitUnknown) return "?";
  return record.exit > 128 ? absl::StrCat("signal ", record.exit - 128) : absl::StrCat(record.exit);
}

}  // namespace

absl::StatusOr<std::vector<ipc::HistoryRecord>> ReadHistory() {
  const std::string dir = ipc::StateDir();
  if (dir.empty()) return absl::FailedPreconditionError("set HOME or XDG_STATE_HOME");
  std::vector<ipc::HistoryRecord> records;
  for (const char* const ending : {".1", ""}) {
    const absl::StatusOr<std::string> text = ipc::ReadBounded(
        absl::StrCat(dir, "/", ipc::kHistoryName, ending), 2 * ipc::kHistoryBytesMax);
    if (absl::IsNotFound(text.status())) continue;
    if (!text.ok()) return text.status();
    ipc::HistoryRead read = ipc::ReadHistoryUntrusted(*text);
    if (read.skipped != 0) {
      Say(0, absl::StrCat(dir, "/", ipc::kHistoryName, ending, ": ", read.skipped,
                          " line(s) are not ours and are skipped"));
    }
    records.insert(records.end(), read.records.begin(), read.records.end());
  }
  return records;
}

std::string HistoryText(const std::vector<ipc::HistoryRecord>& records) {
  Rows rows = {{"ENDED", "COMMAND", "EXIT", "JOB", "RAN", "ITERATIONS", "P50", "P99", "WAITED",
                "PEAK MEMORY"}};
  for (const ipc::HistoryRecord& record : records) {
    rows.push_back(
        {LocalTime(record.end_s), Short(record.command), ExitText(record), absl::StrCat(record.job),
         TimeText(record.ran_us), absl::StrCat(record.iterations), TimeText(record.p50_us),
         TimeText(record.p99_us), TimeText(record.waited_us), BytesText(record.peak_bytes)});
    if (!record.note.empty()) rows.back()[2] += "!";
  }
  std::string text = Table(rows, 3);
  for (const ipc::HistoryRecord& record : records) {
    if (record.note.empty()) continue;
    absl::StrAppend(&text, "! job ", record.job, ": ", Printable(record.note), "\n");
  }
  return text;
}

int History(const Request& request) {
  absl::StatusOr<std::vector<ipc::HistoryRecord>> records = ReadHistory();
  if (!records.ok()) return Say(1, std::string(records.status().message()));
  if (request.count != 0 && records->size() > request.count) {
    records->erase(records->begin(), records->end() - static_cast<ptrdiff_t>(request.count));
  }
  if (request.json) {
    for (const ipc::HistoryRecord& record : *records) {
      std::fputs(ipc::HistoryLine(record).c_str(), stdout);
    }
  } else if (records->empty()) {
    std::puts("no job has ended yet");
  } else {
    std::fputs(HistoryText(*records).c_str(), stdout);
  }
  return 0;
}

}  // namespace cli

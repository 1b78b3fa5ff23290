#include "ipc/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace ipc {
namespace {

using Json = nlohmann::ordered_json;

// One table for both directions.
struct Word {
  const char* name;
  uint64_t HistoryRecord::*word;
};
constexpr Word kWords[] = {
    {"job", &HistoryRecord::job},
    {"ran_us", &HistoryRecord::ran_us},
    {"sessions", &HistoryRecord::sessions},
    {"iterations", &HistoryRecord::iterations},
    {"p50_us", &HistoryRecord::p50_us},
    {"p99_us", &HistoryRecord::p99_us},
    {"waited_us", &HistoryRecord::waited_us},
    {"peak_bytes", &HistoryRecord::peak_bytes},
};
constexpr int64_t kSecondsMax = int64_t{1} << 40;

bool TakeSeconds(const Json& json, const char* name, int64_t* seconds) {
  const Json::const_iterator found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) return false;
  *seconds = found->get<int64_t>();
  return *seconds >= 0 && *seconds <= kSecondsMax;
}

bool TakeText(const Json& json, const char* name, std::string* text) {
  const Json::const_iterator found = json.find(name);
  if (found == json.end() || !found->is_string()) return false;
  *text = found->get<std::string>();
  return text->size() <= 3 * kCommandBytesMax;  // a byte that is no UTF-8 becomes three
}

bool TakeRecordUntrusted(std::string_view line, HistoryRecord* record) {
  if (line.size() > kHistoryLineMax) return false;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  for (const Word& word : kWords) {
    const Json::const_iterator found = json.find(word.name);
    if (found == json.end() || !found->is_number_unsigned()) return false;
    record->*word.word = found->get<uint64_t>();
  }
  const Json::const_iterator exit = json.find("exit");
  if (exit == json.end() || !exit->is_number_integer()) return false;
  const int64_t code = exit->get<int64_t>();
  if (code < kExitUnknown || code > 255) return false;
  record->exit = static_cast<int>(code);
  return TakeSeconds(json, "begin_s", &record->begin_s) &&
         TakeSeconds(json, "end_s", &record->end_s) &&
         TakeText(json, "command", &record->command) && TakeText(json, "note", &record->note);
}

}  // namespace

std::string HistoryLine(const HistoryRecord& record) {
  Json json;
  for (const Word& word : kWords) json[word.name] = record.*word.word;
  json["begin_s"] = record.begin_s;
  json["end_s"] = record.end_s;
  json["exit"] = record.exit;
  // Escapes take up to six bytes for one; what is then too long is cut harder.
  for (size_t room = kCommandBytesMax;; room /= 2) {
    json["command"] = record.command.substr(0, room);
    json["note"] = record.note.substr(0, room);
    const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    if (line.size() <= kHistoryLineMax) return line;
  }
}

HistoryRead ReadHistoryUntrusted(std::string_view text) {
  HistoryRead read;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    HistoryRecord record;
    if (TakeRecordUntrusted(text.substr(0, end), &record)) {
      read.records.push_back(std::move(record));
    } else {
      ++read.skipped;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return read;
}

}  // namespace ipc

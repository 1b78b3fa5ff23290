#include "daemon/control/command_profiles.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace control {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLineBytesMax = 8192;
constexpr size_t kCommandBytesMax = 512;
constexpr int64_t kNumberMax = int64_t{1} << 53;  // exact in any reader of JSON

// One table for both directions.
struct Word {
  const char* name;
  int64_t Needs::*word;
};
constexpr Word kWords[] = {
    {"iterations", &Needs::iterations},
    {"iteration_us", &Needs::iteration_us},
    {"total_us", &Needs::total_us},
    {"persistent_bytes", &Needs::persistent_bytes},
    {"ephemeral_bytes", &Needs::ephemeral_bytes},
};

std::string Hex(uint64_t key) { return absl::StrCat(absl::Hex(key, absl::kZeroPad16)); }

bool ParseHex(const Json& json, uint64_t* key) {
  if (!json.is_string()) return false;
  const std::string& text = json.get_ref<const std::string&>();
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *key, 16);
  return text.size() == 16 && result.ec == std::errc() && result.ptr == end;
}

bool TakeNumber(const Json& json, const char* name, int64_t* number) {
  const Json::const_iterator found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) return false;
  const uint64_t value = found->get<uint64_t>();
  if (value > static_cast<uint64_t>(kNumberMax)) return false;
  *number = static_cast<int64_t>(value);
  return true;
}

bool TakeBeside(const Json& json, CommandProfile* command) {
  const Json::const_iterator found = json.find("beside");
  if (found == json.end()) return true;
  if (!found->is_array() || found->size() > CommandProfiles::kBesideMax) return false;
  for (const Json& entry : *found) {
    uint64_t other = 0;
    Interference beside;
    if (!entry.is_object() || entry.count("key") == 0 || !ParseHex(entry["key"], &other) ||
        !TakeNumber(entry, "permille", &beside.permille) ||
        !TakeNumber(entry, "samples", &beside.samples) || beside.permille == 0) {
      return false;
    }
    command->beside[other] = beside;
  }
  return true;
}

bool TakeLineUntrusted(std::string_view line, uint64_t* key, CommandProfile* command) {
  if (line.size() > kLineBytesMax) return false;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.count("key") == 0 || !ParseHex(json["key"], key)) return false;
  const Json::const_iterator text = json.find("command");
  if (text == json.end() || !text->is_string()) return false;
  command->command = text->get<std::string>().substr(0, kCommandBytesMax);
  for (const Word& word : kWords) {
    if (!TakeNumber(json, word.name, &(command->needs.*word.word))) return false;
  }
  return TakeNumber(json, "runs", &command->runs) && TakeNumber(json, "used_s", &command->used_s) &&
         TakeBeside(json, command);
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

bool IsHead(std::string_view line) {
  const Json json = Json::parse(line.substr(0, kLineBytesMax), nullptr, false);
  int64_t version = 0;
  return json.is_object() && TakeNumber(json, "laneway_learned", &version) &&
         version == CommandProfiles::kVersion;
}

}  // namespace

uint64_t CommandProfiles::KeyOf(std::string_view executable, std::string_view arguments) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const std::string_view part : {executable, std::string_view("\0", 1), arguments}) {
    for (const char letter : part) hash = (hash ^ static_cast<uint8_t>(letter)) * 1099511628211ull;
  }
  return hash;
}

const CommandProfile* CommandProfiles::Find(uint64_t key) const {
  const std::map<uint64_t, CommandProfile>::const_iterator found = commands_.find(key);
  return found == commands_.end() ? nullptr : &found->second;
}

void CommandProfiles::Learn(uint64_t key, std::string_view command, const Needs& run,
                            int64_t now_s) {
  CommandProfile& entry = commands_[key];
  entry.command = std::string(command.substr(0, kCommandBytesMax));
  for (const Word& word : kWords) {
    int64_t& mean = entry.needs.*word.word;
    const int64_t value = std::clamp<int64_t>(run.*word.word, 0, kNumberMax);
    mean = entry.runs == 0 ? value : (mean + value + 1) / 2;
  }
  entry.runs = std::min(entry.runs + 1, kNumberMax);
  entry.used_s = std::clamp<int64_t>(now_s, 0, kNumberMax);
  MakeRoom();
}

void CommandProfiles::LearnBeside(uint64_t key, uint64_t other, int64_t permille) {
  assert(permille > 0);
  const std::map<uint64_t, CommandProfile>::iterator found = commands_.find(key);
  if (found == commands_.end()) return;
  std::map<uint64_t, Interference>& beside = found->second.beside;
  if (beside.count(other) == 0 && beside.size() >= kBesideMax) {
    beside.erase(std::min_element(beside.begin(), beside.end(), [](const auto& a, const auto& b) {
      return a.second.samples < b.second.samples;
    }));
  }
  Interference& entry = beside[other];
  entry.permille = std::clamp<int64_t>(
      entry.samples == 0 ? permille : (entry.permille + permille + 1) / 2, 1, 1'000'000);
  entry.samples = std::min(entry.samples + 1, kNumberMax);
}

void CommandProfiles::MakeRoom() {
  while (commands_.size() > kCommandsMax) {
    commands_.erase(std::min_element(
        commands_.begin(), commands_.end(),
        [](const auto& a, const auto& b) { return a.second.used_s < b.second.used_s; }));
  }
}

std::string CommandProfiles::Encode() const {
  std::string text = Json{{"laneway_learned", kVersion}}.dump() + "\n";
  for (const std::pair<const uint64_t, CommandProfile>& entry : commands_) {
    const CommandProfile& command = entry.second;
    Json json = {{"key", Hex(entry.first)}, {"command", command.command}};
    for (const Word& word : kWords) json[word.name] = command.needs.*word.word;
    json["runs"] = command.runs;
    json["used_s"] = command.used_s;
    for (const std::pair<const uint64_t, Interference>& beside : command.beside) {
      json["beside"].push_back({{"key", Hex(beside.first)},
                                {"permille", beside.second.permille},
                                {"samples", beside.second.samples}});
    }
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

size_t CommandProfiles::MergeUntrusted(std::string_view text) {
  const std::string_view head = TakeLine(&text);
  const bool known = IsHead(head);
  size_t skipped = known || head.empty() ? 0 : 1;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    uint64_t key = 0;
    CommandProfile command;
    if (!known || !TakeLineUntrusted(line, &key, &command)) {
      ++skipped;
      continue;
    }
    const CommandProfile* const mine = Find(key);
    if (mine == nullptr || mine->used_s < command.used_s) commands_[key] = std::move(command);
    MakeRoom();
  }
  return skipped;
}

}  // namespace control

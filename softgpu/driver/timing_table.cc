#include "softgpu/driver/timing_table.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace softgpu {
namespace {

using scheduler::streams::TimedWork;

// A billion seconds, or as many bytes and operations as no grid has: sums stay exact enough.
constexpr double kNumberMax = 1e15;

std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlank); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlank, begin)) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool ParseNumber(std::string_view text, double* value) {
  const std::from_chars_result result =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return false;
  return *value >= 0 && *value <= kNumberMax;  // false for NaN
}

// As near as an int64_t comes.
int64_t Whole(double number) { return static_cast<int64_t>(std::min(number, 9e18)); }

std::string TextOf(const Dim3& grid) {
  return std::to_string(grid.x) + "x" + std::to_string(grid.y) + "x" + std::to_string(grid.z);
}

// "3x2x1", as TextOf writes it.
bool IsGrid(std::string_view text) {
  uint32_t numbers[3] = {};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (uint32_t& number : numbers) {
    if (&number != numbers && (at == end || *at++ != 'x')) return false;
    const std::from_chars_result result = std::from_chars(at, end, number);
    if (result.ec != std::errc() || number == 0) return false;
    at = result.ptr;
  }
  return text == TextOf({numbers[0], numbers[1], numbers[2]});
}

bool SetDevice(std::string_view key, double value, TimedDevice* device) {
  scheduler::streams::Roofline& roofline = device->roofline;
  if (key == "launch_us") {
    roofline.launch_ns = value * 1e3;
    return true;
  }
  if (key == "front_end_us") {
    roofline.front_end_ns = value * 1e3;
    return true;
  }
  if (value == 0) return false;  // the others are divided by
  if (key == "multiply_accumulates_per_ns") {
    roofline.multiply_accumulates_a_ns = value;
  } else if (key == "bytes_per_ns") {
    roofline.bytes_a_ns = value;
  } else if (key == "host_bytes_per_ns") {
    device->host_bytes_a_ns = value;
  } else if (key == "sms" && value >= 1 && value <= 1024) {
    device->sms = static_cast<uint64_t>(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool TimingTable::ParseLine(std::string_view line) {
  const std::vector<std::string_view> words = WordsOf(line);
  if (words.empty()) return true;
  double value = 0;
  if (words[0] == "device" && words.size() == 3) {
    return ParseNumber(words[2], &value) && SetDevice(words[1], value, &device_);
  }
  const bool skips = words.size() == 6 && words[5] == "skip";
  if (words.size() != (skips ? 6 : 5) || (words[2] != "*" && !IsGrid(words[2]))) return false;
  Rule rule;
  rule.skips = skips;
  rule.of_one_block = words[0] == "blocks";
  if (!rule.of_one_block && words[0] != "kernel") return false;
  if (!ParseNumber(words[3], &rule.first) || !ParseNumber(words[4], &rule.second)) return false;
  if (!rule.of_one_block && (rule.second == 0 || rule.second > 1)) return false;
  // Twice the same rule: which of them counts would be a guess.
  return rules_.emplace(std::string(words[1]) + " " + std::string(words[2]), rule).second;
}

std::optional<TimingTable> TimingTable::ParseUntrusted(std::string_view text, std::string* error) {
  TimingTable table;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!table.ParseLine(text.substr(0, end))) {
      *error =
          "line " + std::to_string(number) +
          " is not understood, or says again what a line before says; accepted are 'device KEY "
          "VALUE', 'kernel NAME GRID TIME_US SHARE [skip]' and 'blocks NAME GRID "
          "MULTIPLY_ACCUMULATES BYTES [skip]'";
      return std::nullopt;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return table;
}

std::optional<TimedKernel> TimingTable::TimeOf(const std::string& name, const Dim3& grid,
                                               uint64_t blocks_at_once) const {
  const std::string grid_text = TextOf(grid);
  for (const std::string& key :
       {name + " " + grid_text, name + " *", "* " + grid_text, std::string("* *")}) {
    const std::map<std::string, Rule>::const_iterator found = rules_.find(key);
    if (found == rules_.end()) continue;
    const Rule& rule = found->second;
    if (!rule.of_one_block) {
      return TimedKernel{{rule.first * 1e3, device_.roofline.launch_ns, rule.second}, rule.skips};
    }
    const double blocks = static_cast<double>(grid.Count());
    scheduler::streams::Work work;
    work.multiply_accumulates = Whole(rule.first * blocks);
    work.bytes = Whole(rule.second * blocks);
    work.blocks = Whole(blocks);
    work.blocks_at_once = static_cast<int64_t>(device_.sms * blocks_at_once);
    return TimedKernel{CostOf(work, device_.roofline), rule.skips};
  }
  return std::nullopt;
}

TimedWork TimingTable::OnDevice(uint64_t bytes) const {
  constexpr uint64_t kBlockBytes = 1 << 10, kBlocksAtOnce = 8;  // 256 threads with a word each
  scheduler::streams::Work work;
  work.bytes = Whole(static_cast<double>(bytes));
  work.blocks = std::max<int64_t>(work.bytes / static_cast<int64_t>(kBlockBytes), 1);
  work.blocks_at_once = static_cast<int64_t>(device_.sms * kBlocksAtOnce);
  return {TimedWork::Kind::kKernel, CostOf(work, device_.roofline)};
}

TimedWork TimingTable::BesideDevice(uint64_t bytes, bool to_host) const {
  scheduler::streams::Cost cost;
  cost.time_ns = static_cast<double>(bytes) / device_.host_bytes_a_ns;
  cost.launch_ns = device_.roofline.launch_ns;
  return {to_host ? TimedWork::Kind::kCopyToHost : TimedWork::Kind::kCopyToDevice, cost};
}

}  // namespace softgpu

#include "softgpu/driver/config.h"

#include <charconv>

#include "ipc/calls/limits.h"

namespace softgpu {
namespace {

constexpr uint64_t kMemoryBytesMin = ipc::limits::kExtentBytesMin * 8;
constexpr uint64_t kMemoryBytesMax = ipc::limits::kSoftDeviceBytes / 2;

bool ParseNumber(std::string_view text, uint64_t* value, std::string_view* rest) {
  const std::from_chars_result result =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  *rest = text.substr(result.ptr - text.data());
  return result.ec == std::errc() && result.ptr != text.data();
}

bool ParseCount(std::string_view text, uint64_t max, unsigned* value) {
  uint64_t number = 0;
  std::string_view rest;
  if (!ParseNumber(text, &number, &rest) || !rest.empty()) return false;
  if (number < 1 || number > max) return false;
  *value = static_cast<unsigned>(number);
  return true;
}

bool ParseBytes(std::string_view text, uint64_t* bytes) {
  uint64_t number = 0;
  std::string_view unit;
  if (!ParseNumber(text, &number, &unit)) return false;
  int shift = 0;
  if (unit == "GiB") {
    shift = 30;
  } else if (unit == "MiB") {
    shift = 20;
  } else {
    return false;
  }
  if (number > (kMemoryBytesMax >> shift)) return false;
  *bytes = number << shift;
  return *bytes >= kMemoryBytesMin;
}

bool ParseComputeCapability(std::string_view text, Config* config) {
  uint64_t major = 0, minor = 0;
  std::string_view rest;
  if (!ParseNumber(text, &major, &rest) || rest.empty() || rest[0] != '.') return false;
  if (!ParseNumber(rest.substr(1), &minor, &rest) || !rest.empty()) return false;
  if (major < 7 || major > 12 || minor > 9) return false;
  config->cc_major = static_cast<int>(major);
  config->cc_minor = static_cast<int>(minor);
  return true;
}

bool ParseExecutor(std::string_view text, Config::Executor* executor) {
  for (const auto& [name, value] : {std::pair{"auto", Config::Executor::kAuto},
                                    std::pair{"interpreter", Config::Executor::kInterpreter},
                                    std::pair{"llvm", Config::Executor::kLlvm}}) {
    if (text != name) continue;
    *executor = value;
    return true;
  }
  return false;
}

bool ParseItem(std::string_view key, std::string_view value, Config* config) {
  if (key == "devices") return ParseCount(value, ipc::limits::kSoftDevicesMax, &config->devices);
  if (key == "memory") return ParseBytes(value, &config->memory_bytes);
  if (key == "sms") return ParseCount(value, 1024, &config->sms);
  if (key == "cc") return ParseComputeCapability(value, config);
  if (key == "watchdog") return ParseCount(value, 86'400'000, &config->watchdog_ms);
  if (key == "check_exit") return ParseCount(value, 255, &config->check_exit);
  if (key == "check" && (value == "0" || value == "1")) {
    config->check = value == "1";
    return true;
  }
  if (key == "sticky" && (value == "process" || value == "context")) {
    config->sticky_context = value == "context";
    return true;
  }
  if (key == "timing" && !value.empty()) {
    config->timing = value;
    return true;
  }
  if (key == "executor") return ParseExecutor(value, &config->executor);
  if (key == "cache" && (value == "on" || value == "off")) {
    config->cache = value == "on";
    return true;
  }
  return false;
}

}  // namespace

std::optional<Config> ParseConfig(std::string_view text, std::string* error) {
  Config config;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos ||
        !ParseItem(item.substr(0, equals), item.substr(equals + 1), &config)) {
      *error =
          std::string(kConfigVariable) + ": '" + std::string(item) +
          "' is not understood; accepted are devices=1..8, memory=16MiB..1024GiB (in MiB or GiB), "
          "sms=1..1024, cc=7.0..12.9, executor=auto|interpreter|llvm, cache=on|off, check=0|1, "
          "check_exit=1..255, watchdog=MILLISECONDS, timing=FILE and sticky=process|context, "
          "separated by commas";
      return std::nullopt;
    }
  }
  if (!config.timing.empty() && config.devices > 1) {
    *error = std::string(kConfigVariable) +
             ": virtual time is of one device; accepted are devices=1 with timing=FILE, or several "
             "devices without";
    return std::nullopt;
  }
  return config;
}

}  // namespace softgpu

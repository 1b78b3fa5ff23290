// What people may say about serving language models: the flags of laneway-serve, which
// `laneway serve` has, too, and passes on.
//
// Thread safety: main().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace serve::llm {

// Where a front listens, and what it says of its model.
struct FrontOptions {
  std::string name;  // of the model, to clients; empty: the file's
  std::string host = "127.0.0.1";
  int32_t port = 8000;
  std::string api_key_file;
  std::string slo;
};

struct ServeOptions : FrontOptions {
  std::string batching = "budget";
  std::string order = "fcfs";
  int32_t requests_max = 64;
  int32_t rows_max = 256;
  int32_t queue_max = 10'000;
  int32_t stages = 1;
  int32_t ahead = 0;
  int32_t context = 0;    // 0: what the model has
  int32_t kv_blocks = 0;  // 0: as kv_memory says
  std::string kv_memory;  // empty: a share of the memory that is free
  std::string kv_type = "f32";
};

struct ServeFlag {
  const char* name;  // without dashes
  const char* help;
  // One of them points at the option.
  int32_t ServeOptions::*number = nullptr;
  std::string ServeOptions::*text = nullptr;
};
const std::vector<ServeFlag>& ServeFlags();
// Declares them for a command of CLI11, which writes what is said into `options`.
template <typename Command>
void AddServeFlags(Command* command, ServeOptions* options) {
  for (const ServeFlag& flag : ServeFlags()) {
    const std::string name = std::string("--") + flag.name;
    if (flag.number != nullptr) command->add_option(name, options->*flag.number, flag.help);
    if (flag.text != nullptr) command->add_option(name, options->*flag.text, flag.help);
  }
}
// Those that differ from what is said by itself, as words of a command line.
std::vector<std::string> WordsOf(const ServeOptions& options);

}  // namespace serve::llm

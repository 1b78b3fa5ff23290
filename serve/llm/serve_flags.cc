#include "serve/llm/serve_flags.h"

#include "absl/strings/str_cat.h"

namespace serve::llm {

const std::vector<ServeFlag>& ServeFlags() {
  static const std::vector<ServeFlag> flags = {
      {.name = "batching",
       .help = "which requests a step computes: budget, orca, padded, fastertransformer",
       .text = &ServeOptions::batching},
      {.name = "order",
       .help = "which request comes first: fcfs, priority, edf",
       .text = &ServeOptions::order},
      {.name = "requests-max",
       .help = "how many answers are generated at once",
       .number = &ServeOptions::requests_max},
      {.name = "rows-max",
       .help = "how many tokens a step computes",
       .number = &ServeOptions::rows_max},
      {.name = "queue-max",
       .help = "how many requests wait at most; further ones are refused for load",
       .number = &ServeOptions::queue_max},
      {.name = "stages",
       .help =
           "into how many processes, of some layers each, a model is cut: 1 to 4; each is on the "
           "next device, where there are several",
       .number = &ServeOptions::stages},
      {.name = "ahead",
       .help =
           "1: a step is submitted before the one before is done, with the same requests; under "
           "--batching=budget",
       .number = &ServeOptions::ahead},
      {.name = "context",
       .help = "how many tokens a request and its answer may have; 0 is what the model can",
       .number = &ServeOptions::context},
      {.name = "kv-blocks",
       .help = "how many blocks of 16 tokens keys and values have; 0 is by --kv-memory",
       .number = &ServeOptions::kv_blocks},
      {.name = "kv-memory",
       .help = "how much of the device keys and values have (2GiB); a quarter of what is free "
               "without it",
       .text = &ServeOptions::kv_memory},
      {.name = "kv-type",
       .help = "how keys and values are kept: f32, f16",
       .text = &ServeOptions::kv_type},
      {.name = "name",
       .help = "what clients call the model; its file's name without it",
       .text = &ServeOptions::name},
      {.name = "host",
       .help = "the address to listen on; others than this machine's want --api-key-file",
       .text = &ServeOptions::host},
      {.name = "port",
       .help = "the port to listen on; 0 takes any free one",
       .number = &ServeOptions::port},
      {.name = "api-key-file",
       .help = "a file of keys, one a line, of which clients have to give one",
       .text = &ServeOptions::api_key_file},
      {.name = "slo",
       .help =
           "count answers that meet these goals in ms, for /metrics: ttft:500,tpot:100,e2el:5000",
       .text = &ServeOptions::slo},
  };
  return flags;
}

std::vector<std::string> WordsOf(const ServeOptions& options) {
  const ServeOptions unsaid;
  std::vector<std::string> words;
  for (const ServeFlag& flag : ServeFlags()) {
    if (flag.number != nullptr && options.*flag.number != unsaid.*flag.number)
      words.push_back(absl::StrCat("--", flag.name, "=", options.*flag.number));
    if (flag.text != nullptr && options.*flag.text != unsaid.*flag.text)
      words.push_back(absl::StrCat("--", flag.name, "=", options.*flag.text));
  }
  return words;
}

}  // namespace serve::llm

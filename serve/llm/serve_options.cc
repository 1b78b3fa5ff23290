#include "serve/llm/serve_options.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/batching/iteration/modes.h"
#include "serve/llm/stage/layer_share.h"

namespace serve::llm {
namespace {

namespace iteration = scheduler::batching::iteration;

template <typename Value>
struct Named {
  const char* name;
  Value value;
};
constexpr Named<iteration::Order> kOrders[] = {{"fcfs", iteration::Order::kFcfs},
                                               {"priority", iteration::Order::kPriority},
                                               {"edf", iteration::Order::kDeadline}};
constexpr Named<kernels::llm::KvType> kKvTypes[] = {{"f32", kernels::llm::KvType::kFloat},
                                                    {"f16", kernels::llm::KvType::kHalf}};
constexpr Named<uint64_t> kUnits[] = {
    {"KiB", uint64_t{1} << 10}, {"MiB", uint64_t{1} << 20}, {"GiB", uint64_t{1} << 30}, {"", 1}};

template <typename Value, size_t kCount>
absl::StatusOr<Value> Find(const Named<Value> (&rows)[kCount], const char* flag,
                           const std::string& name) {
  std::vector<std::string> names;
  for (const Named<Value>& row : rows) {
    if (name == row.name) return row.value;
    names.push_back(row.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", name, " is not one of ", absl::StrJoin(names, ", ")));
}

absl::Status CheckNumbers(const ServeOptions& options) {
  if (options.requests_max < 1 || options.rows_max < options.requests_max)
    return absl::InvalidArgumentError(
        "--requests-max must be at least 1, and --rows-max as many: each request that generates "
        "has a row");
  if (options.queue_max < 1)
    return absl::InvalidArgumentError("--queue-max must be at least 1: each request waits first");
  if (options.stages < 1 || options.stages > kStagesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", options.stages, " is not one of 1 to ", kStagesMax));
  if (options.ahead != 0 && options.ahead != 1)
    return absl::InvalidArgumentError(absl::StrCat("--ahead=", options.ahead, " is not 0 or 1"));
  if (options.ahead == 1 && (options.stages > 1 || options.batching != "budget"))
    return absl::InvalidArgumentError(
        "--ahead=1 is for --batching=budget and one stage: several stages work on different "
        "requests meanwhile");
  if (options.context < 0 || options.kv_blocks < 0)
    return absl::InvalidArgumentError("--context and --kv-blocks can't be negative");
  if (options.kv_blocks > 0 && !options.kv_memory.empty())
    return absl::InvalidArgumentError("say --kv-blocks or --kv-memory, not both");
  if (!options.kv_memory.empty() && BytesOf(options.kv_memory) == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-memory=", options.kv_memory, " is no size; say 512MiB or 2GiB"));
  const std::vector<std::string>& modes = iteration::ModeNames();
  if (std::find(modes.begin(), modes.end(), options.batching) == modes.end())
    return absl::InvalidArgumentError(absl::StrCat("--batching=", options.batching,
                                                   " is not one of ", absl::StrJoin(modes, ", ")));
  return absl::OkStatus();
}

absl::Status AddModel(const std::string& path, const Model& model, EngineGeneratorOptions* made) {
  if (!model.sizes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " ", std::string(model.sizes.status().message())));
  }
  const absl::StatusOr<LayerShare> share = ShareOf(*model.sizes, 0, made->load.stages);
  if (!share.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " ", std::string(share.status().message())));
  }
  const int32_t context = static_cast<int32_t>(model.sizes->context);
  int32_t* const context_max = &made->generation.batcher.context_max;
  *context_max = *context_max == 0 ? context : std::min(*context_max, context);
  made->load.path = path;
  made->load.context_max = *context_max;
  made->generation.vocabulary = static_cast<int32_t>(model.sizes->vocabulary);
  if (model.text.ok()) made->generation.end_tokens = model.text->ends;
  return absl::OkStatus();
}

}  // namespace

uint64_t BytesOf(const std::string& text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc()) return 0;
  const std::string_view unit(read.ptr, static_cast<size_t>(end - read.ptr));
  for (const Named<uint64_t>& row : kUnits) {
    if (unit == row.name) return number > UINT64_MAX / row.value ? 0 : number * row.value;
  }
  return 0;
}

absl::StatusOr<EngineGeneratorOptions> OptionsForModel(const ServeOptions& options,
                                                       const std::string& path, const Model& model,
                                                       std::vector<std::string> engine_command) {
  if (const absl::Status status = CheckNumbers(options); !status.ok()) return status;
  const absl::StatusOr<iteration::Order> order = Find(kOrders, "order", options.order);
  if (!order.ok()) return order.status();
  const absl::StatusOr<kernels::llm::KvType> kv_type = Find(kKvTypes, "kv-type", options.kv_type);
  if (!kv_type.ok()) return kv_type.status();
  EngineGeneratorOptions made;
  made.command = std::move(engine_command);
  made.load.blocks = options.kv_blocks;
  made.load.pool_bytes = BytesOf(options.kv_memory);
  made.load.kv_type = static_cast<uint32_t>(*kv_type);
  made.load.stages = options.stages;
  made.generation.batcher.ahead = options.ahead == 1;
  made.generation.batcher.steps_in_flight_max = options.ahead == 1 ? 2 : options.stages;
  made.generation.batching = options.batching;
  made.generation.batcher.order = *order;
  made.generation.batcher.context_max = options.context;
  made.generation.batcher.answers_max = options.requests_max;
  made.generation.batcher.tokens_max = options.rows_max;
  made.generation.batcher.queue_requests_max = options.queue_max;
  made.generation.batcher.hash_seed = std::random_device()();
  if (const absl::Status status = AddModel(path, model, &made); !status.ok()) return status;
  return made;
}

}  // namespace serve::llm

#include "serve/llm/engine/messages.h"

#include "serve/engine/message_bytes.h"

// The lists of fields lie where the types do, so that the archives find them.
namespace kernels::llm {

template <typename Archive>
void Fields(Archive& archive, SamplingRow& row) {
  archive(row.temperature);
  archive(row.top_p);
  archive(row.min_p);
  archive(row.top_k);
  archive(row.seed);
  archive(row.position);
  archive(row.copy);
}
template <typename Archive>
void Fields(Archive& archive, Penalties& penalties) {
  archive(penalties.repetition);
  archive(penalties.frequency);
  archive(penalties.presence);
}
template <typename Archive>
void Fields(Archive& archive, TokenEdit& edit) {
  archive(edit.token);
  archive(edit.generated);
  archive(edit.appeared);
  archive(edit.bias);
}

}  // namespace kernels::llm

namespace serve::llm {

template <typename Archive>
void Fields(Archive& archive, Sampling& sampling) {
  archive(sampling.how);
  archive(sampling.penalties);
  archive(sampling.edits);
  archive(sampling.top_logprobs);
}
template <typename Archive>
void Fields(Archive& archive, BatchRequest& request) {
  archive(request.tokens);
  archive(request.follows);
  archive(request.length);
  archive(request.blocks);
  archive(request.samples);
}
template <typename Archive>
void Fields(Archive& archive, StepResult& result) {
  archive(result.tokens);
  archive(result.logprobs);
  archive(result.ranks);
  archive(result.top_tokens);
  archive(result.top_logprobs);
}
template <typename Archive>
void Fields(Archive& archive, Load& load) {
  archive(load.version);
  archive(load.path);
  archive(load.rows_max);
  archive(load.requests_max);
  archive(load.context_max);
  archive(load.blocks);
  archive(load.pool_bytes);
  archive(load.kv_type);
  archive(load.stage);
  archive(load.stages);
}
template <typename Archive>
void Fields(Archive& archive, Progress& progress) {
  archive(progress.done);
  archive(progress.of);
}
template <typename Archive>
void Fields(Archive& archive, Ready& ready) {
  archive(ready.blocks);
  archive(ready.context_max);
  archive(ready.vocabulary);
  archive(ready.width_columns);
  archive(ready.width_multiples);
}
template <typename Archive>
void Fields(Archive& archive, Failed& failed) {
  archive(failed.why);
}
template <typename Archive>
void Fields(Archive& archive, Plan& plan) {
  archive(plan.number);
  archive(plan.requests);
  archive(plan.copies);
}
template <typename Archive>
void Fields(Archive& archive, Answer& answer) {
  archive(answer.number);
  archive(answer.result);
  archive(answer.step_us);
}

namespace {

// The message of the kind `number`; false: there is no such kind.
template <size_t kKind = 0>
bool MakeKind(size_t number, Message* message) {
  if constexpr (kKind == std::variant_size_v<Message>) {
    return false;
  } else {
    if (number != kKind) return MakeKind<kKind + 1>(number, message);
    message->emplace<kKind>();
    return true;
  }
}

}  // namespace

engine::Bytes Encode(const Message& message) {
  engine::MessageWriter writer;
  uint8_t kind = static_cast<uint8_t>(message.index());
  writer(kind);
  // The lists of fields are for reading, too, and take what they could change.
  std::visit([&writer](auto copy) { writer(copy); }, message);
  return writer.Take();
}

bool DecodeUntrusted(std::span<const std::byte> body, Message* message) {
  engine::MessageReaderUntrusted reader(body);
  uint8_t kind = 0;
  reader(kind);
  if (!MakeKind(kind, message)) return false;
  std::visit([&reader](auto& fields) { reader(fields); }, *message);
  return reader.IsDone();
}

}  // namespace serve::llm

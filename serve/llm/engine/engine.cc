#include "serve/llm/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/engine/child_process.h"
#include "serve/engine/device.h"
#include "serve/engine/frames.h"
#include "serve/llm/engine/messages.h"
#include "serve/llm/engine/neighbours.h"
#include "serve/llm/engine/pool_size.h"
#include "serve/llm/model/model_file.h"
#include "serve/llm/stage/stage.h"

namespace serve::llm {
namespace {

constexpr uint64_t kHalfBytes = 2;
constexpr int32_t kRowsMost = 1 << 20;  // bounds of what a front may ask for
constexpr int32_t kRequestsMost = 1 << 16;

absl::Status AboutFile(const Load& load, const absl::Status& status) {
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status) || absl::IsCancelled(status))
    return status;
  return absl::Status(status.code(), absl::StrCat(load.path, " ", std::string(status.message())));
}

absl::Status CheckUntrusted(const Load& load) {
  if (load.version != kMessagesVersion)
    return absl::FailedPreconditionError(
        "the program's file was replaced by another version; restart laneway-serve");
  const bool fine = load.rows_max > 0 && load.rows_max <= kRowsMost && load.requests_max > 0 &&
                    load.requests_max <= kRequestsMost && load.requests_max <= load.rows_max &&
                    load.context_max >= 0 && load.blocks >= 0 && load.stages > 0 &&
                    load.stages <= kStagesMax && load.stage >= 0 && load.stage < load.stages &&
                    load.kv_type <= static_cast<uint32_t>(kernels::llm::KvType::kHalf);
  return fine ? absl::OkStatus() : absl::InvalidArgumentError("the engine is asked for nonsense");
}

class Engine {
  using Clock = std::chrono::steady_clock;

 public:
  Engine(int socket, int passed) : socket_(socket), neighbours_(passed) {}

  // Ok: the front has gone. Cancelled: another stage has.
  absl::Status Run() {
    std::optional<engine::Bytes> body = engine::ReadFrame(socket_, &reader_);
    if (!body.has_value()) return absl::OkStatus();
    Message message;
    if (!DecodeUntrusted(*body, &message) || !std::holds_alternative<Load>(message))
      return absl::InvalidArgumentError("the engine was told no model");
    if (const absl::Status status = Prepare(std::get<Load>(message)); !status.ok()) return status;
    absl::Status status;
    while (status.ok()) {
      // The next step is submitted before the device is done with this one, if it is there.
      if (!plans_.empty() && (plans_.size() == steps_max_ || !engine::HasBytes(socket_, reader_))) {
        status = FinishStep();
        continue;
      }
      body = engine::ReadFrame(socket_, &reader_);
      if (!body.has_value()) return absl::OkStatus();
      if (!DecodeUntrusted(*body, &message) || !std::holds_alternative<Plan>(message))
        return absl::InvalidArgumentError("the engine was told no step");
      status = BeginStep(std::get<Plan>(message));
    }
    return status;
  }

  void Tell(const Message& message) { (void)engine::WriteFrame(socket_, Encode(message)); }
  void WaitForFront() {
    while (engine::ReadFrame(socket_, &reader_).has_value()) {
    }
  }

 private:
  absl::Status Prepare(const Load& load) {
    if (const absl::Status status = CheckUntrusted(load); !status.ok()) return status;
    const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(load.path);
    if (!file.ok()) return file.status();
    const Model& model = file->model();
    const absl::StatusOr<ModelSizes>& sizes = model.sizes;
    if (!sizes.ok()) return AboutFile(load, sizes.status());
    absl::StatusOr<std::unique_ptr<engine::Device>> device =
        engine::Device::Open(load.stage, Stage::Modules());
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    const absl::StatusOr<LayerShare> share = ShareOf(*sizes, load.stage, load.stages);
    if (!share.ok()) return AboutFile(load, share.status());
    const HiddenShape shape = {static_cast<uint64_t>(load.rows_max), sizes->width};
    absl::Status status = neighbours_.Offer(*share, shape, device_.get());
    if (!status.ok()) return status;
    const int32_t context = static_cast<int32_t>(sizes->context);
    const int32_t context_max =
        load.context_max == 0 ? context : std::min(load.context_max, context);
    const absl::StatusOr<StageOptions> options =
        OptionsOf(load, context_max, *sizes, *share, WeightBytes(model.tensors, *share));
    if (!options.ok()) return options.status();
    absl::StatusOr<std::unique_ptr<Stage>> stage =
        Stage::Load(device_.get(), model, *options, [this](uint64_t done, uint64_t of) {
          Tell(Progress{done, of});
        });
    if (!stage.ok()) return AboutFile(load, stage.status());
    stage_ = *std::move(stage);
    // A stage of several waits for its neighbours at each step's beginning and end.
    if (load.stages == 1) steps_max_ = StepsInFlight::kMax;
    status = neighbours_.AgreeOnWidth(shape, device_.get(), stage_.get());
    if (!status.ok()) return status;
    Tell(Ready{options->blocks, context_max, stage_->limits().vocabulary, stage_->width().columns,
               stage_->width().multiples ? 1u : 0u});
    return absl::OkStatus();
  }

  absl::StatusOr<StageOptions> OptionsOf(const Load& load, int32_t context_max,
                                         const ModelSizes& sizes, const LayerShare& share,
                                         uint64_t weight_bytes) {
    StageOptions options;
    options.stage = load.stage;
    options.stages = load.stages;
    options.rows_max = load.rows_max;
    options.requests_max = load.requests_max;
    options.kv_type = static_cast<kernels::llm::KvType>(load.kv_type);
    const uint64_t element_bytes =
        options.kv_type == kernels::llm::KvType::kHalf ? kHalfBytes : sizeof(float);
    const absl::StatusOr<size_t> free = device_->FreeBytes();
    if (!free.ok()) return free.status();
    const absl::StatusOr<int32_t> blocks = PoolBlocks(
        {load.blocks, load.pool_bytes / share.layers * share.count, context_max, load.requests_max},
        *free > weight_bytes ? *free - weight_bytes : 0,
        kernels::llm::kBlockTokens * sizes.KvBytesOfToken(element_bytes) / share.layers *
            share.count);
    if (!blocks.ok()) return blocks.status();
    options.blocks = *blocks;
    return options;
  }

  absl::Status BeginStep(const Plan& plan) {
    plans_.push_back({plan.number, Clock::now()});
    const absl::StatusOr<PackedBatch> batch = Pack(plan);
    if (!batch.ok()) return batch.status();
    const absl::StatusOr<HiddenStates> hidden = neighbours_.BeginStep(plan.number);
    if (!hidden.ok()) return hidden.status();
    return stage_->Submit(*batch, *hidden, false);
  }

  // Of the plan that came first. A step takes no time while the step before is computed.
  absl::Status FinishStep() {
    const auto [number, began] = plans_.front();
    plans_.pop_front();
    absl::StatusOr<StepResult> result = stage_->Finish();
    if (!result.ok()) return result.status();
    const absl::Status status = neighbours_.EndStep(number);
    if (!status.ok() || neighbours_.has_next()) return status;
    const Clock::time_point before = std::exchange(finished_, Clock::now());
    const std::chrono::microseconds took =
        std::chrono::duration_cast<std::chrono::microseconds>(finished_ - std::max(began, before));
    Tell(Answer{number, *std::move(result), static_cast<uint64_t>(took.count())});
    return absl::OkStatus();
  }

  // The last stage alone draws tokens, and has memory for logits.
  absl::StatusOr<PackedBatch> Pack(const Plan& plan) {
    absl::StatusOr<PackedBatch> batch = PackUntrusted(plan.requests, plan.copies, stage_->limits());
    if (batch.ok() && neighbours_.has_next()) {
      batch->sampled.clear();
      batch->sampling = SamplingBatch();
    }
    return batch;
  }

  const int socket_;
  engine::FrameReader reader_;
  Neighbours neighbours_;  // whose memory is pinned: it outlives the device
  std::unique_ptr<engine::Device> device_;
  std::unique_ptr<Stage> stage_;
  size_t steps_max_ = 1;                                      // that are computed at once
  std::deque<std::pair<uint64_t, Clock::time_point>> plans_;  // of these: number and beginning
  Clock::time_point finished_;                                // the last one
};

}  // namespace

int RunEngine(int socket, int passed) {
  engine::EndWithParent();
  Engine engine(socket, passed);
  const absl::Status status = engine.Run();
  if (status.ok()) return 0;
  // The front has seen how the other stage has ended, and ends this one.
  if (absl::IsCancelled(status)) {
    engine.WaitForFront();
    return 0;
  }
  engine.Tell(Failed{std::string(status.message())});
  return 1;
}

}  // namespace serve::llm

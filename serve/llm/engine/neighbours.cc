#include "serve/llm/engine/neighbours.h"

#include <utility>

namespace serve::llm {

absl::Status Neighbours::Offer(const LayerShare& share, const HiddenShape& shape,
                               engine::Device* device) {
  if (share.is_last()) return absl::OkStatus();
  absl::StatusOr<HiddenSender> next =
      HiddenSender::Open(Descriptor(share.is_first() ? passed_ : passed_ + 1), shape);
  if (!next.ok()) return next.status();
  next_ = *std::move(next);
  device->Pin(next_->memory());
  return absl::OkStatus();
}

absl::Status Neighbours::AgreeOnWidth(const HiddenShape& shape, engine::Device* device,
                                      Stage* stage) {
  if (next_.has_value()) {
    const absl::StatusOr<engine::GemmWidth> width = next_->ReceiveWidth();
    if (!width.ok()) return width.status();
    stage->TakeWidth(*width);
  }
  if (stage->share().is_first()) return absl::OkStatus();
  absl::StatusOr<HiddenReceiver> previous = HiddenReceiver::Open(Descriptor(passed_), shape);
  if (!previous.ok()) return previous.status();
  previous_ = *std::move(previous);
  device->Pin(previous_->memory());
  return previous_->SendWidth(stage->width());
}

absl::StatusOr<HiddenStates> Neighbours::BeginStep(uint64_t plan) {
  HiddenStates hidden;
  if (previous_.has_value()) {
    const absl::StatusOr<const float*> rows = previous_->WaitForRows(plan);
    if (!rows.ok()) return rows.status();
    hidden.in = *rows;
  }
  if (next_.has_value()) {
    const absl::StatusOr<float*> slot = next_->WaitForSlot(plan);
    if (!slot.ok()) return slot.status();
    hidden.out = *slot;
  }
  return hidden;
}

absl::Status Neighbours::EndStep(uint64_t plan) {
  absl::Status status;
  if (previous_.has_value()) status = previous_->Release(plan);
  if (status.ok() && next_.has_value()) status = next_->Pass(plan);
  return status;
}

}  // namespace serve::llm

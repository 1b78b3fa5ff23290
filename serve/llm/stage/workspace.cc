#include "serve/llm/stage/workspace.h"

namespace serve::llm {
namespace {

constexpr size_t kAlignment = 256;

class Carver {
 public:
  // The offset of `rows` rows of `elements` floats or integers.
  size_t Take(size_t rows, size_t elements) {
    const size_t offset = bytes_;
    const size_t wanted = rows * elements * sizeof(float);
    bytes_ += (wanted + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace

Workspace WorkspaceOf(const ModelSizes& sizes, bool gated, const PackedBatch& batch,
                      const engine::GemmWidth& width) {
  const size_t rows = batch.ids.size();
  const size_t padded = static_cast<size_t>(width.Padded(batch.rows()));
  const size_t samples = batch.sampled.size();
  const size_t padded_samples = static_cast<size_t>(width.Padded(static_cast<int32_t>(samples)));
  const size_t queries = sizes.heads * sizes.head_width;
  const size_t keys = sizes.kv_heads * sizes.head_width;
  Carver carver;
  Workspace space;
  space.integers = carver.Take(1, batch.ids.size() + batch.start.size() + batch.length.size() +
                                      batch.table.size() + samples + batch.copies.size());
  space.x = carver.Take(rows, sizes.width);
  space.normed = carver.Take(padded, sizes.width);
  space.qkv = carver.Take(padded, queries + 2 * keys);
  space.q = carver.Take(rows, queries);
  space.attended = carver.Take(padded, queries);
  space.added = carver.Take(padded, sizes.width);
  space.up = carver.Take(padded, (gated ? 2 : 1) * sizes.feed_forward);
  space.inner = carver.Take(padded, sizes.feed_forward);
  space.sampled = carver.Take(padded_samples, sizes.width);
  space.logits = carver.Take(padded_samples, sizes.vocabulary);
  space.bytes = carver.bytes();
  return space;
}

}  // namespace serve::llm

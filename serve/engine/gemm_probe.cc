#include "serve/engine/gemm_probe.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "serve/engine/work_queue.h"

namespace serve::engine {
namespace {

// One matrix, and columns of random numbers. The same numbers at each start: a choice that changed
// from one engine to the next would change answers.
class Prober {
 public:
  Prober(Device* device, const ProbedMatrix& matrix) : device_(device), matrix_(matrix) {}

  absl::StatusOr<bool> Agree(int32_t width, int32_t columns) {
    const std::vector<float> x = Columns(columns);
    // The same columns, each one place further: other places and neighbours.
    std::vector<float> turned(x);
    std::rotate(turned.begin(), turned.end() - matrix_.in, turned.end());
    absl::StatusOr<std::vector<float>> apart = Multiply(x, columns, {width, false});
    if (!apart.ok()) return apart.status();
    const absl::StatusOr<std::vector<float>> together = Multiply(turned, columns, {columns, false});
    if (!together.ok()) return together.status();
    std::rotate(apart->begin(), apart->end() - matrix_.out, apart->end());
    return std::memcmp(apart->data(), together->data(), apart->size() * sizeof(float)) == 0;
  }

 private:
  std::vector<float> Columns(int32_t columns) const {
    std::mt19937 random(1);
    std::vector<float> x(static_cast<size_t>(columns) * static_cast<size_t>(matrix_.in));
    // Of 24 bits and both signs, so that each sum is rounded.
    for (float& value : x) value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    return x;
  }

  absl::StatusOr<std::vector<float>> Multiply(const std::vector<float>& x, int32_t columns,
                                              const GemmWidth& width) {
    std::vector<float> y(static_cast<size_t>(columns) * static_cast<size_t>(matrix_.out));
    WorkQueue queue(device_);
    const CUdeviceptr in = queue.Allocate(x.size() * sizeof(float));
    const CUdeviceptr out = queue.Allocate(y.size() * sizeof(float));
    queue.CopyIn(in, x.data(), x.size() * sizeof(float));
    queue.Multiply({matrix_.weights, matrix_.out, matrix_.in, reinterpret_cast<const float*>(in),
                    reinterpret_cast<float*>(out), columns},
                   width);
    queue.CopyOut(y.data(), out, y.size() * sizeof(float));
    const absl::Status status = queue.Finish();
    if (!status.ok()) return status;
    return y;
  }

  Device* const device_;
  const ProbedMatrix matrix_;
};

}  // namespace

absl::StatusOr<GemmWidth> ProbeGemmWidth(Device* device,
                                         const std::vector<ProbedMatrix>& matrices) {
  int32_t columns_max = 1;
  for (const ProbedMatrix& matrix : matrices)
    columns_max = std::max(columns_max, matrix.columns_max);
  return ChooseGemmWidth(columns_max, [&](int32_t width, int32_t columns) -> absl::StatusOr<bool> {
    for (const ProbedMatrix& matrix : matrices) {
      // More than a matrix ever gets, padding included, need not agree.
      if (columns > GemmWidth{width, true}.Padded(matrix.columns_max)) continue;
      const absl::StatusOr<bool> agree = Prober(device, matrix).Agree(width, columns);
      if (!agree.ok() || !*agree) return agree;
    }
    return true;
  });
}

}  // namespace serve::engine

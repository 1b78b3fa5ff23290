// A multi-layer perceptron 64-128-64-10 on one stream: matrix products by cuBLAS, the rest by our
// own kernels.
//
// All parameters lie in one device buffer (per layer: weights [inputs x outputs], row-major, then
// biases), so that one Adam launch updates everything. No atomics and a fixed order of additions:
// the same seed gives the same bits.
//
// Thread safety: one thread per Mlp.
#pragma once

#include <cublas_v2.h>

#include <string>

#include "common.h"
#include "digits/dataset.h"

class Mlp {
 public:
  static constexpr int kLayers = 3;
  static constexpr int kSizes[kLayers + 1] = {Digits::kPixels, 128, 64, Digits::kClasses};

  // `rows_max` is the largest batch that Forward and Train will be given.
  Mlp(int rows_max, uint64_t seed);
  ~Mlp();
  Mlp(const Mlp&) = delete;
  Mlp& operator=(const Mlp&) = delete;

  // One step of Adam on `rows` examples; images and labels are device addresses. Writes each row's
  // loss to `losses`.
  void Train(const float* images, const int* labels, int rows, float rate, float* losses);

  // Computes the logits of `rows` examples, which stay on the device until the next call.
  const float* Forward(const float* images, int rows);

  // The most likely class of each row, from the host's images.
  std::vector<int> Classify(const std::vector<float>& images);

  bool Save(const std::string& path) const;
  bool Load(const std::string& path);

  std::vector<float> Parameters() const { return parameters_.Get(); }
  cudaStream_t stream() const { return stream_; }

 private:
  float* Weights(const DeviceBuffer<float>& buffer, int layer) const;
  float* Biases(const DeviceBuffer<float>& buffer, int layer) const;
  void Backward(const float* images, int rows);

  int rows_max_;
  int steps_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  DeviceBuffer<float> parameters_, gradients_, first_moments_, second_moments_;
  DeviceBuffer<float> activations_[kLayers];  // the outputs of each layer
  DeviceBuffer<float> deltas_[kLayers];       // the loss's gradient at each layer's outputs
};

// The share of `digits` that `mlp` classifies correctly, in percent.
double AccuracyPercent(Mlp* mlp, const Digits& digits);

// Trains on `digits` for `epochs` passes in a shuffled order; prints the mean loss of each pass
// when `verbose`. With `pause_every` it prints the time of every so many batches and waits for a
// line of standard input, so that one who compares two runs can take turns with them.
struct TrainOptions {
  int epochs = 30;
  int pause_every = 0;
  int batch = 32;
  uint64_t seed = 1;
  bool verbose = true;
};
// Prints the time of so many batches or requests since `begin_ms`, and waits for a line. The time
// begins anew then.
void Pause(int batches, double* begin_ms);
void TrainEpochs(Mlp* mlp, const Digits& digits, const TrainOptions& options);

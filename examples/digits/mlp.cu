#include "digits/mlp.h"

#include <algorithm>
#include <cmath>
#include <utility>

static void CheckCublas(cublasStatus_t status, const char* call, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "mlp.cu:%d: %s: %s\n", line, call, cublasGetStatusString(status));
  std::exit(1);
}
#define CUBLAS_CHECK(call) CheckCublas((call), #call, __LINE__)

// --- kernels ------------------------------------------------------------------------------------

constexpr int kThreads = 128;
static int Blocks(int count) { return (count + kThreads - 1) / kThreads; }

__global__ void AddBias(float* values, const float* biases, int rows, int columns, bool relu) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const float value = values[i] + biases[i % columns];
  values[i] = relu ? fmaxf(value, 0.0f) : value;
}

// One thread per row: the loss, and its gradient at the logits, of softmax with cross entropy.
__global__ void SoftmaxLoss(const float* logits, const int* labels, int rows, int classes,
                            float* losses, float* deltas) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* logit = logits + row * classes;
  float largest = logit[0], sum = 0;
  for (int i = 1; i < classes; ++i) largest = fmaxf(largest, logit[i]);
  for (int i = 0; i < classes; ++i) sum += __expf(logit[i] - largest);
  losses[row] = __logf(sum) + largest - logit[labels[row]];
  for (int i = 0; i < classes; ++i) {
    const float probability = __expf(logit[i] - largest) / sum;
    deltas[row * classes + i] = (probability - (i == labels[row] ? 1.0f : 0.0f)) / rows;
  }
}

__global__ void ReluBackward(const float* activations, float* deltas, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && activations[i] <= 0.0f) deltas[i] = 0.0f;
}

__global__ void SumRows(const float* deltas, int rows, int columns, float* sums) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += deltas[row * columns + column];
  sums[column] = sum;
}

struct AdamStep {
  float rate, first_decay, second_decay, first_correction, second_correction;
};

__global__ void Adam(float* parameters, const float* gradients, float* first, float* second,
                     int count, AdamStep step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float gradient = gradients[i];
  const float m = step.first_decay * first[i] + (1.0f - step.first_decay) * gradient;
  const float v = step.second_decay * second[i] + (1.0f - step.second_decay) * gradient * gradient;
  first[i] = m;
  second[i] = v;
  parameters[i] -=
      step.rate * (m * step.first_correction) / (sqrtf(v * step.second_correction) + 1e-8f);
}

__global__ void GatherRows(const float* images, const int* labels, const int* order, int rows,
                           float* batch_images, int* batch_labels) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * Digits::kPixels) return;
  const int row = i / Digits::kPixels, pixel = i % Digits::kPixels;
  batch_images[i] = images[order[row] * Digits::kPixels + pixel];
  if (pixel == 0) batch_labels[row] = labels[order[row]];
}

// --- the network --------------------------------------------------------------------------------

static int ParameterCount() {
  int count = 0;
  for (int layer = 0; layer < Mlp::kLayers; ++layer)
    count += (Mlp::kSizes[layer] + 1) * Mlp::kSizes[layer + 1];
  return count;
}

static std::vector<float> InitialParameters(uint64_t seed) {
  Random random(seed);
  std::vector<float> parameters;
  for (int layer = 0; layer < Mlp::kLayers; ++layer) {
    const int inputs = Mlp::kSizes[layer], outputs = Mlp::kSizes[layer + 1];
    const float limit = std::sqrt(6.0f / static_cast<float>(inputs));  // He's rule for ReLU
    for (int i = 0; i < inputs * outputs; ++i)
      parameters.push_back((2.0f * random.Uniform() - 1.0f) * limit);
    parameters.insert(parameters.end(), outputs, 0.0f);
  }
  return parameters;
}

Mlp::Mlp(int rows_max, uint64_t seed)
    : rows_max_(rows_max),
      parameters_(InitialParameters(seed)),
      gradients_(ParameterCount()),
      first_moments_(std::vector<float>(ParameterCount(), 0.0f)),
      second_moments_(std::vector<float>(ParameterCount(), 0.0f)),
      activations_{DeviceBuffer<float>(rows_max * kSizes[1]),
                   DeviceBuffer<float>(rows_max * kSizes[2]),
                   DeviceBuffer<float>(rows_max * kSizes[3])},
      deltas_{DeviceBuffer<float>(rows_max * kSizes[1]), DeviceBuffer<float>(rows_max * kSizes[2]),
              DeviceBuffer<float>(rows_max * kSizes[3])} {
  CUDA_CHECK(cudaStreamCreate(&stream_));
  CUBLAS_CHECK(cublasCreate(&cublas_));
  CUBLAS_CHECK(cublasSetStream(cublas_, stream_));
}

Mlp::~Mlp() {
  cublasDestroy(cublas_);
  cudaStreamDestroy(stream_);
}

float* Mlp::Weights(const DeviceBuffer<float>& buffer, int layer) const {
  float* address = buffer.get();
  for (int i = 0; i < layer; ++i) address += (kSizes[i] + 1) * kSizes[i + 1];
  return address;
}

float* Mlp::Biases(const DeviceBuffer<float>& buffer, int layer) const {
  return Weights(buffer, layer) + kSizes[layer] * kSizes[layer + 1];
}

// cuBLAS is column-major: a row-major product C = A B is the column-major product C' = B' A'.
const float* Mlp::Forward(const float* images, int rows) {
  const float one = 1, zero = 0;
  const float* input = images;
  for (int layer = 0; layer < kLayers; ++layer) {
    const int inputs = kSizes[layer], outputs = kSizes[layer + 1];
    float* output = activations_[layer].get();
    CUBLAS_CHECK(cublasSgemm(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs, rows, inputs, &one,
                             Weights(parameters_, layer), outputs, input, inputs, &zero, output,
                             outputs));
    AddBias<<<Blocks(rows * outputs), kThreads, 0, stream_>>>(output, Biases(parameters_, layer),
                                                              rows, outputs, layer + 1 < kLayers);
    input = output;
  }
  CUDA_CHECK(cudaGetLastError());
  return input;
}

void Mlp::Backward(const float* images, int rows) {
  const float one = 1, zero = 0;
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const int inputs = kSizes[layer], outputs = kSizes[layer + 1];
    const float* input = layer == 0 ? images : activations_[layer - 1].get();
    const float* delta = deltas_[layer].get();
    CUBLAS_CHECK(cublasSgemm(cublas_, CUBLAS_OP_N, CUBLAS_OP_T, outputs, inputs, rows, &one, delta,
                             outputs, input, inputs, &zero, Weights(gradients_, layer), outputs));
    SumRows<<<Blocks(outputs), kThreads, 0, stream_>>>(delta, rows, outputs,
                                                       Biases(gradients_, layer));
    if (layer == 0) break;
    float* below = deltas_[layer - 1].get();
    CUBLAS_CHECK(cublasSgemm(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, inputs, rows, outputs, &one,
                             Weights(parameters_, layer), outputs, delta, outputs, &zero, below,
                             inputs));
    ReluBackward<<<Blocks(rows * inputs), kThreads, 0, stream_>>>(input, below, rows * inputs);
  }
}

void Mlp::Train(const float* images, const int* labels, int rows, float rate, float* losses) {
  const float* logits = Forward(images, rows);
  SoftmaxLoss<<<Blocks(rows), kThreads, 0, stream_>>>(logits, labels, rows, Digits::kClasses,
                                                      losses, deltas_[kLayers - 1].get());
  Backward(images, rows);
  ++steps_;
  AdamStep step;
  step.rate = rate;
  step.first_decay = 0.9f;
  step.second_decay = 0.999f;
  step.first_correction = static_cast<float>(1.0 / (1.0 - std::pow(0.9, steps_)));
  step.second_correction = static_cast<float>(1.0 / (1.0 - std::pow(0.999, steps_)));
  const int count = static_cast<int>(parameters_.size());
  Adam<<<Blocks(count), kThreads, 0, stream_>>>(parameters_.get(), gradients_.get(),
                                                first_moments_.get(), second_moments_.get(), count,
                                                step);
  CUDA_CHECK(cudaGetLastError());
}

std::vector<int> Mlp::Classify(const std::vector<float>& images) {
  const int rows = static_cast<int>(images.size()) / Digits::kPixels;
  const DeviceBuffer<float> device_images(images);
  std::vector<int> classes(rows);
  std::vector<float> logits(rows_max_ * Digits::kClasses);
  for (int start = 0; start < rows; start += rows_max_) {
    const int count = std::min(rows_max_, rows - start);
    const float* output = Forward(device_images.get() + start * Digits::kPixels, count);
    CUDA_CHECK(cudaMemcpyAsync(logits.data(), output, count * Digits::kClasses * sizeof(float),
                               cudaMemcpyDeviceToHost, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    for (int row = 0; row < count; ++row) {
      const float* logit = logits.data() + row * Digits::kClasses;
      int best = 0;
      for (int i = 1; i < Digits::kClasses; ++i) best = logit[i] > logit[best] ? i : best;
      classes[start + row] = best;
    }
  }
  return classes;
}

bool Mlp::Save(const std::string& path) const {
  const std::vector<float> parameters = parameters_.Get();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written =
      std::fwrite(parameters.data(), sizeof(float), parameters.size(), file) == parameters.size();
  return std::fclose(file) == 0 && written;
}

bool Mlp::Load(const std::string& path) {
  std::vector<float> parameters(ParameterCount() + 1);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const size_t count = std::fread(parameters.data(), sizeof(float), parameters.size(), file);
  std::fclose(file);
  if (count != parameters_.size()) return false;
  parameters.resize(count);
  parameters_.Set(parameters);
  return true;
}

// --- training -----------------------------------------------------------------------------------

double AccuracyPercent(Mlp* mlp, const Digits& digits) {
  const std::vector<int> classes = mlp->Classify(digits.images);
  int right = 0;
  for (int row = 0; row < digits.rows(); ++row) right += classes[row] == digits.labels[row];
  return 100.0 * right / digits.rows();
}

static void Shuffle(std::vector<int>* order, Random* random) {
  for (size_t i = order->size(); i > 1; --i)
    std::swap((*order)[i - 1], (*order)[random->Next() % i]);
}

// Tells the time of the batches since `*begin_ms`, and starts it again when a line has come.
void Pause(int batches, double* begin_ms) {
  std::printf("time: %d batches %.3f ms\n", batches, NowMs() - *begin_ms);
  std::fflush(stdout);
  for (int c = std::getchar(); c != '\n' && c != EOF; c = std::getchar()) {
  }
  *begin_ms = NowMs();
}

void TrainEpochs(Mlp* mlp, const Digits& digits, const TrainOptions& options) {
  const int rows = digits.rows();
  const DeviceBuffer<float> images(digits.images);
  const DeviceBuffer<int> labels(digits.labels);
  DeviceBuffer<int> device_order(rows), batch_labels(options.batch);
  DeviceBuffer<float> batch_images(options.batch * Digits::kPixels), losses(rows);
  std::vector<int> order(rows);
  for (int i = 0; i < rows; ++i) order[i] = i;
  Random random(options.seed + 1000);
  double begin_ms = NowMs();
  int batches = 0;  // since it

  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    Shuffle(&order, &random);
    device_order.Set(order);
    // A cosine from the full rate to a hundredth of it.
    const double phase = static_cast<double>(epoch) / options.epochs;
    const float rate =
        static_cast<float>(2e-3 * (0.505 + 0.495 * std::cos(phase * 3.14159265358979)));
    for (int start = 0; start < rows; start += options.batch) {
      const int count = std::min(options.batch, rows - start);
      GatherRows<<<Blocks(count * Digits::kPixels), kThreads, 0, mlp->stream()>>>(
          images.get(), labels.get(), device_order.get() + start, count, batch_images.get(),
          batch_labels.get());
      mlp->Train(batch_images.get(), batch_labels.get(), count, rate, losses.get() + start);
      if (++batches == options.pause_every) {
        CUDA_CHECK(cudaStreamSynchronize(mlp->stream()));
        Pause(std::exchange(batches, 0), &begin_ms);
      }
    }
    CUDA_CHECK(cudaStreamSynchronize(mlp->stream()));
    double sum = 0;
    for (const float loss : losses.Get()) sum += loss;
    if (options.verbose) std::printf("epoch %d: loss %.9f\n", epoch + 1, sum / rows);
  }
}

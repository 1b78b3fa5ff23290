// A chain of equal layers with its kernels, for the loops of loops.cu. Every call either works or
// ends the program. Thread safety: none.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

inline void Check(cudaError_t status, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "loops:%d: %s\n", line, cudaGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) Check((call), __LINE__)

inline uint64_t random_state = 12345;
inline int Random(int below) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<int>((random_state >> 33) % static_cast<uint64_t>(below));
}

__global__ void Embed(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 0.5f;
}
__global__ void Layer(float* out, const float* in, const float* weights, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(in[i] * weights[i % 64], 0.0f);
}
__global__ void Normalize(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * 0.999f + 0.001f;
}
__global__ void Loss(float* loss, float* delta, const float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) delta[i] = out[i] - 1.0f;
  if (i == 0) *loss = out[0];
}
__global__ void LayerBackward(float* below, float* gradients, const float* delta,
                              const float* weights, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) below[i] = delta[i] * weights[i % 64];
  if (i < 64) gradients[i] += delta[i];
}
__global__ void Optimize(float* weights, const float* gradients, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weights[i] -= 0.001f * gradients[i];
}
__global__ void Accuracy(float* result, const float* out, int n) {
  if (blockIdx.x * blockDim.x + threadIdx.x == 0) *result = out[n - 1];
}
__global__ void Force(float* accelerations, const float* positions, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) accelerations[i] = -positions[i];
}
__global__ void Move(float* positions, const float* accelerations, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) positions[i] += 0.01f * accelerations[i];
}

inline int Blocks(int n) { return (n + 127) / 128; }

// A chain of equal layers. With `fresh` memory every activation and gradient is allocated when it
// is made and freed when it is not needed any more, as frameworks do; else it is all there from the
// beginning.
class Network {
 public:
  Network(int layers, int width, int rows_max, bool fresh)
      : layers_(layers),
        width_(width),
        fresh_(fresh),
        activations_(layers + 1),
        weights_(layers),
        gradients_(layers) {
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cudaMalloc(&scalar_, sizeof(float)));
    for (float*& weights : weights_) {
      CHECK(cudaMalloc(&weights, 64 * sizeof(float)));
      const std::vector<float> initial(64, 0.9f);
      CHECK(cudaMemcpy(weights, initial.data(), 64 * sizeof(float), cudaMemcpyHostToDevice));
    }
    CHECK(cudaMalloc(&input_, rows_max * width * sizeof(float)));
    if (fresh_) return;
    for (float*& activation : activations_)
      CHECK(cudaMalloc(&activation, rows_max * width * sizeof(float)));
    for (float*& gradient : gradients_) CHECK(cudaMalloc(&gradient, 64 * sizeof(float)));
    for (float*& delta : delta_) CHECK(cudaMalloc(&delta, rows_max * width * sizeof(float)));
  }

  void Upload(int rows) {
    host_.assign(rows * width_, 0.25f);
    CHECK(cudaMemcpyAsync(input_, host_.data(), host_.size() * sizeof(float),
                          cudaMemcpyHostToDevice, stream_));
    n_ = rows * width_;
  }
  void Forward(int layers) {
    Make(&activations_[0]);
    Embed<<<Blocks(n_), 128, 0, stream_>>>(activations_[0], input_, n_);
    for (int i = 0; i < layers; ++i) OneLayer(i);
  }
  void OneLayer(int i) {
    Make(&activations_[i + 1]);
    Layer<<<Blocks(n_), 128, 0, stream_>>>(activations_[i + 1], activations_[i], weights_[i], n_);
    Normalize<<<Blocks(n_), 128, 0, stream_>>>(activations_[i + 1], n_);
  }
  void Backward() {
    Make(&delta_[0]);
    Make(&delta_[1]);
    Loss<<<Blocks(n_), 128, 0, stream_>>>(scalar_, delta_[0], activations_[layers_], n_);
    for (int i = layers_ - 1; i >= 0; --i) {
      if (gradients_[i] == nullptr) {
        CHECK(cudaMalloc(&gradients_[i], 64 * sizeof(float)));
        CHECK(cudaMemsetAsync(gradients_[i], 0, 64 * sizeof(float), stream_));
      }
      LayerBackward<<<Blocks(n_), 128, 0, stream_>>>(delta_[1], gradients_[i], delta_[0],
                                                     weights_[i], n_);
      std::swap(delta_[0], delta_[1]);
      Drop(&activations_[i + 1]);
    }
    Drop(&activations_[0]);
    Drop(&delta_[0]);
    Drop(&delta_[1]);
  }
  void ZeroGradients() {
    for (float*& gradient : gradients_) {
      if (fresh_) {
        Drop(&gradient);
      } else {
        CHECK(cudaMemsetAsync(gradient, 0, 64 * sizeof(float), stream_));
      }
    }
  }
  // One kernel more on the last layer's output.
  void Refine() { Normalize<<<Blocks(n_), 128, 0, stream_>>>(activations_[layers_], n_); }
  void Step() {
    for (int i = 0; i < layers_; ++i)
      Optimize<<<1, 64, 0, stream_>>>(weights_[i], gradients_[i], 64);
  }
  void Score(int layers) { Accuracy<<<1, 32, 0, stream_>>>(scalar_, activations_[layers], n_); }
  void Measure(int layers) {
    Score(layers);
    for (int i = 0; i <= layers && fresh_; ++i) Drop(&activations_[i]);
  }
  float Read() {
    float value = 0;
    CHECK(cudaMemcpyAsync(&value, scalar_, sizeof value, cudaMemcpyDeviceToHost, stream_));
    Wait();
    return value;
  }
  void Wait() { CHECK(cudaStreamSynchronize(stream_)); }
  void SaveWeights() {
    std::vector<float> weights(64);
    for (float* const device : weights_)
      CHECK(cudaMemcpy(weights.data(), device, 64 * sizeof(float), cudaMemcpyDeviceToHost));
  }
  void Train(int rows) {
    Upload(rows);
    Forward(layers_);
    Backward();
    Step();
    ZeroGradients();
  }
  float Validate(int rows) {
    Upload(rows);
    Forward(layers_);
    Measure(layers_);
    return Read();
  }
  int layers() const { return layers_; }

 private:
  void Make(float** address) {
    if (*address == nullptr) CHECK(cudaMalloc(address, n_ * sizeof(float)));
  }
  void Drop(float** address) {
    if (!fresh_ || *address == nullptr) return;
    CHECK(cudaFree(*address));
    *address = nullptr;
  }

  const int layers_, width_;
  const bool fresh_;
  cudaStream_t stream_;
  std::vector<float*> activations_, weights_, gradients_;
  float* delta_[2] = {};
  float *input_ = nullptr, *scalar_ = nullptr;
  std::vector<float> host_;
  int n_ = 0;
};

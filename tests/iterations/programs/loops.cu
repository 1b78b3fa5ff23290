// Loops as real programs have them, with laneway_iteration() at the place where a person would say
// that an iteration begins: the detector's labelled op streams are recorded from these (see
// tests/data/op_streams/README.md). The networks are small; their loops are not simplified.
//
//     loops NAME [ITERATIONS [hold]]
// "hold" keeps the session open until standard input ends.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "laneway.h"

static void Check(cudaError_t status, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "loops.cu:%d: %s\n", line, cudaGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) Check((call), __LINE__)

static uint64_t random_state = 12345;
static int Random(int below) {
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

static int Blocks(int n) { return (n + 127) / 128; }

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
  void Step() {
    for (int i = 0; i < layers_; ++i)
      Optimize<<<1, 64, 0, stream_>>>(weights_[i], gradients_[i], 64);
  }
  void Measure(int layers) {
    Accuracy<<<1, 32, 0, stream_>>>(scalar_, activations_[layers], n_);
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

// --- training ------------------------------------------------------------------------------------

// The loss is read back at the end of each step.
static void TrainReading(int steps) {
  Network network(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// The host waits once per epoch; the last batch is smaller.
static void TrainEpochs(int steps) {
  Network network(4, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(step % 12 == 11 ? 7 : 32);
    if (step % 12 == 11) network.Read();
  }
}

// Three validation batches after every ten steps, and weights saved after every thirty.
static void TrainValidating(int steps) {
  Network network(6, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
    for (int i = 0; i < 3 && step % 10 == 9; ++i) {
      laneway_iteration();
      network.Validate(16);
    }
    if (step % 30 == 29) network.SaveWeights();
  }
}

// One validation batch after every four steps, with memory of its own from the beginning.
static void TrainValidatingOften(int steps) {
  Network network(3, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
    if (step % 4 != 3) continue;
    laneway_iteration();
    network.Validate(32);
  }
}

// Gradients of several micro-batches, then one step of the optimizer: that is the iteration.
static void Accumulate(int steps, int parts, bool fresh, bool read_each) {
  Network network(4, 64, 32, fresh);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    for (int part = 0; part < parts; ++part) {
      network.Upload(16);
      network.Forward(network.layers());
      network.Backward();
      if (read_each) network.Read();
    }
    network.Step();
    network.ZeroGradients();
    network.Read();
  }
}

// Batches of any size, as sorted or padded sentences make them.
static void ChangingShapes(int steps) {
  Network network(5, 64, 64, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(8 + 8 * Random(7));
    network.Read();
  }
}

// Twelve equal layers in memory that is there from the beginning: layers repeat, too.
static void DeepPreallocated(int steps) {
  Network network(12, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// Two steps of one network, then one of the other: each is an iteration.
static void Adversaries(int steps) {
  Network critic(3, 64, 32, true), maker(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    Network& network = step % 3 == 2 ? maker : critic;
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// Lengths of episodes differ; each is followed by a step of learning.
static void Episodes(int episodes) {
  Network policy(2, 64, 32, true), learner(4, 64, 64, true);
  for (int episode = 0; episode < episodes; ++episode) {
    for (int act = 0; act < 4 + Random(9); ++act) {
      laneway_iteration();
      policy.Validate(1);
    }
    laneway_iteration();
    learner.Train(64);
    learner.Read();
  }
}

// A step of a small network on what a large one answers: both belong to the iteration.
static void Distill(int steps) {
  Network teacher(7, 64, 32, true), student(3, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    teacher.Upload(32);
    teacher.Forward(teacher.layers());
    teacher.Measure(teacher.layers());
    student.Train(32);
    student.Read();
  }
}

// The network grows twice; between its sizes weights are saved and made anew.
static void Curriculum(int steps) {
  for (const int layers : {2, 4, 8}) {
    Network network(layers, 64, 32, true);
    for (int step = 0; step < steps / 3; ++step) {
      laneway_iteration();
      network.Train(32);
      network.Read();
    }
    network.SaveWeights();
  }
}

// Crops of three sizes; every sixteen steps an epoch ends with five validation batches and saved
// weights.
static void Segment(int steps) {
  Network network(7, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(8 << Random(3));
    network.Read();
    if (step % 16 != 15) continue;
    for (int i = 0; i < 5; ++i) {
      laneway_iteration();
      network.Validate(32);
    }
    network.SaveWeights();
  }
}

// Five micro-batches whose losses nobody reads before the step; a validation pass of two batches
// after every six steps.
static void AccumulateValidating(int steps) {
  Network network(3, 128, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    for (int part = 0; part < 5; ++part) {
      network.Upload(8);
      network.Forward(network.layers());
      network.Backward();
    }
    network.Step();
    network.ZeroGradients();
    network.Read();
    for (int i = 0; i < 2 && step % 6 == 5; ++i) {
      laneway_iteration();
      network.Validate(32);
    }
  }
}

// --- answering -----------------------------------------------------------------------------------

// After each layer the host decides whether the answer is good enough.
static void EarlyExit(int requests) {
  Network network(8, 64, 8, false);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    network.Upload(8);
    network.Forward(2);
    const int exit = 3 + Random(6);
    for (int i = 2; i < exit && i < network.layers(); ++i) network.OneLayer(i);
    network.Measure(exit);
    network.Read();
  }
}

// Requests for two models in any order, in batches of any size.
static void TwoModels(int requests) {
  Network small(3, 64, 16, true), large(9, 64, 16, true);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    (Random(3) == 0 ? large : small).Validate(1 + Random(16));
  }
}

// Requests in batches; after every fifty the model is replaced by another one.
static void Replace(int requests) {
  for (int model = 0; model < 5; ++model) {
    Network network(4 + model % 2, 64, 16, false);
    for (int request = 0; request < requests / 5; ++request) {
      laneway_iteration();
      network.Validate(1 + Random(16));
    }
  }
}

// A prompt of any length, then tokens one by one: each of them is an iteration.
static void Generate(int requests) {
  Network network(6, 64, 64, false);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    network.Validate(4 + Random(60));
    for (int token = 0; token < 6 + Random(20); ++token) {
      laneway_iteration();
      network.Validate(1);
    }
  }
}

// --- simulating ----------------------------------------------------------------------------------

// A snapshot after every twenty steps; nothing else waits.
static void Simulate(int steps) {
  const int n = 4096;
  float *positions, *accelerations;
  CHECK(cudaMalloc(&positions, n * sizeof(float)));
  CHECK(cudaMalloc(&accelerations, n * sizeof(float)));
  std::vector<float> host(n, 1.0f);
  CHECK(cudaMemcpy(positions, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    Force<<<Blocks(n), 128>>>(accelerations, positions, n);
    Move<<<Blocks(n), 128>>>(positions, accelerations, n);
    if (step % 20 == 19)
      CHECK(cudaMemcpy(host.data(), positions, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 200;
  const auto is = [name](const char* word) { return std::strcmp(name, word) == 0; };
  if (is("train_reading")) {
    TrainReading(count);
  } else if (is("train_epochs")) {
    TrainEpochs(count);
  } else if (is("train_validating")) {
    TrainValidating(count);
  } else if (is("train_validating_often")) {
    TrainValidatingOften(count);
  } else if (is("accumulate_preallocated")) {
    Accumulate(count, 4, false, false);
  } else if (is("accumulate_fresh")) {
    Accumulate(count, 4, true, true);
  } else if (is("accumulate_many")) {
    Accumulate(count, 8, false, false);
  } else if (is("changing_shapes")) {
    ChangingShapes(count);
  } else if (is("deep_preallocated")) {
    DeepPreallocated(count);
  } else if (is("adversaries")) {
    Adversaries(count);
  } else if (is("segment")) {
    Segment(count);
  } else if (is("replace")) {
    Replace(count);
  } else if (is("distill")) {
    Distill(count);
  } else if (is("curriculum")) {
    Curriculum(count);
  } else if (is("accumulate_validating")) {
    AccumulateValidating(count);
  } else if (is("episodes")) {
    Episodes(count);
  } else if (is("early_exit")) {
    EarlyExit(count);
  } else if (is("two_models")) {
    TwoModels(count);
  } else if (is("generate")) {
    Generate(count);
  } else if (is("simulate")) {
    Simulate(count);
  } else {
    std::fprintf(stderr, "usage: loops NAME [ITERATIONS]\n");
    return 2;
  }
  CHECK(cudaDeviceSynchronize());
  if (argc > 3) {
    std::puts("done");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  }
  return 0;
}

// A loop that answers requests: a vector of eight floats in, one out. What is special about its
// iterations the first argument says; the second, how many there are. Prints the last request and
// its answer, each as the hexadecimal digits of its bytes.
#include <string.h>

#include "check.h"

namespace {

constexpr int kCount = 8;
constexpr size_t kBytes = kCount * sizeof(float);

__device__ float offset = 0.5f;

__global__ void Answer(const float* in, const float* weights, float* out, float scale) {
  const int i = threadIdx.x;
  out[i] = in[i] * weights[i] * scale + offset;
}

// The vectors' addresses lie in memory.
__global__ void AnswerThrough(const float* const* vectors, float* out) {
  const int i = threadIdx.x;
  out[i] = vectors[0][i] * vectors[1][i];
}

__global__ void Accumulate(const float* in, float* sums, float* out) {
  const int i = threadIdx.x;
  out[i] = sums[i] += in[i];
}

void Print(const char* what, const float* values) {
  printf("%s ", what);
  const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(values);
  for (size_t i = 0; i < kBytes; ++i) printf("%02x", bytes[i]);
  printf("\n");
}

struct Program {
  const char* way = "plain";
  float *in = nullptr, *weights = nullptr, *out = nullptr;
  const float** vectors = nullptr;
  cudaGraphExec_t graph = nullptr;

  bool Is(const char* name) const { return strcmp(way, name) == 0; }

  void Start() {
    float host[kCount];
    for (int i = 0; i < kCount; ++i) host[i] = 1.0f + i * 0.25f;
    CUDA_CHECK(cudaMalloc(&in, kBytes));
    CUDA_CHECK(cudaMalloc(&weights, kBytes));
    CUDA_CHECK(cudaMalloc(&out, kBytes));
    CUDA_CHECK(cudaMalloc(&vectors, 2 * sizeof *vectors));
    CUDA_CHECK(cudaMemcpy(weights, host, kBytes, cudaMemcpyHostToDevice));
    const float* const addresses[] = {in, weights};
    CUDA_CHECK(cudaMemcpy(vectors, addresses, sizeof addresses, cudaMemcpyHostToDevice));
    const float moved = 0.75f;
    CUDA_CHECK(cudaMemcpyToSymbol(offset, &moved, sizeof moved));
    if (Is("graph")) Capture();
  }

  void Capture() {
    cudaStream_t stream = nullptr;
    cudaGraph_t captured = nullptr;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA_CHECK(cudaMemsetAsync(out, 0, kBytes, stream));
    Answer<<<1, kCount, 0, stream>>>(in, weights, out, 2.0f);
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
    CUDA_CHECK(cudaGraphInstantiate(&graph, captured, 0));
  }

  void Compute(int round) {
    if (Is("graph")) {
      CUDA_CHECK(cudaGraphLaunch(graph, nullptr));
    } else if (Is("through")) {
      AnswerThrough<<<1, kCount>>>(vectors, out);
    } else if (Is("state")) {
      Accumulate<<<1, kCount>>>(in, weights, out);
    } else if (Is("temporary")) {
      float* between = nullptr;
      CUDA_CHECK(cudaMalloc(&between, kBytes));
      Answer<<<1, kCount>>>(in, weights, between, 2.0f);
      Answer<<<1, kCount>>>(between, weights, out, 2.0f);
      CUDA_CHECK(cudaFree(between));
    } else {
      const float scale = Is("scalar") ? 1.0f + round : 2.0f;
      Answer<<<1, Is("grid") && round % 2 != 0 ? kCount / 2 : kCount>>>(in, weights, out, scale);
    }
  }

  void Run(int rounds) {
    float request[kCount] = {}, answer[kCount] = {};
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < kCount; ++i) request[i] = static_cast<float>((round * 7 + i) % 32);
      if (!Is("no-input")) CUDA_CHECK(cudaMemcpy(in, request, kBytes, cudaMemcpyHostToDevice));
      Compute(round);
      if (Is("middle")) {
        CUDA_CHECK(cudaMemcpy(answer, out, kBytes, cudaMemcpyDeviceToHost));
        for (float& value : answer) value = -value;
        CUDA_CHECK(cudaMemcpy(in, answer, kBytes / 2, cudaMemcpyHostToDevice));
        Compute(round);
      }
      if (Is("no-output")) {
        CUDA_CHECK(cudaDeviceSynchronize());
      } else {
        CUDA_CHECK(cudaMemcpy(answer, out, kBytes, cudaMemcpyDeviceToHost));
      }
    }
    Print("request", request);
    Print("answer", answer);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Program program;
  if (argc > 1) program.way = argv[1];
  program.Start();
  program.Run(argc > 2 ? static_cast<int>(strtol(argv[2], nullptr, 10)) : 300);
  return program.Is("fail") ? 3 : 0;
}

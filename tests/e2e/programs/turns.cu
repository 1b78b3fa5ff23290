// Rounds of kernels dealt out to three streams by turns. An event joins the streams, and one of
// them adds what they have made; then the host waits. In some rounds an argument differs, a step
// falls out, or a kernel on the default stream comes in between. Prints what the memory held.
//
// turns ROUNDS: that many equal rounds; then the program waits for the end of its input.
#include "check.h"

constexpr int kCount = 1 << 10, kStreams = 3, kSteps = 6;
constexpr size_t kBytes = kCount * sizeof(unsigned);

__global__ void Mix(unsigned* to, unsigned salt) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = to[i] * 1664525u + i + salt;
}

__global__ void Sum(unsigned* to, const unsigned* a, const unsigned* b) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] += a[i] * 31 + b[i];
}

static unsigned* memory[kStreams];
static cudaStream_t streams[kStreams];
static cudaEvent_t made[kStreams], summed;

static unsigned Round(unsigned round, bool varies) {
  static unsigned host[kCount];
  const int steps = varies && round % 9 == 4 ? kSteps - 1 : kSteps;
  for (int step = 0; step < steps; ++step) {
    for (int of = 0; of < kStreams; ++of) {
      const unsigned salt = varies && round % 5 == 2 && step == 3 ? round : 7;
      Mix<<<kCount / 128, 128, 0, streams[of]>>>(memory[of], salt + of);
    }
    if (varies && round % 13 == 7 && step == 2)
      Mix<<<kCount / 128, 128>>>(memory[round % kStreams], 1);
  }
  for (int of = 1; of < kStreams; ++of) {
    CUDA_CHECK(cudaEventRecord(made[of], streams[of]));
    CUDA_CHECK(cudaStreamWaitEvent(streams[0], made[of], 0));
  }
  Sum<<<kCount / 128, 128, 0, streams[0]>>>(memory[0], memory[1], memory[2]);
  CUDA_CHECK(cudaEventRecord(summed, streams[0]));
  for (int of = 1; of < kStreams; ++of) CUDA_CHECK(cudaStreamWaitEvent(streams[of], summed, 0));
  CUDA_CHECK(cudaMemcpyAsync(host, memory[0], kBytes, cudaMemcpyDeviceToHost, streams[0]));
  CUDA_CHECK(cudaStreamSynchronize(streams[0]));
  unsigned sum = 0;
  for (unsigned value : host) sum = sum * 31 + value;
  return sum;
}

int main(int argc, char** argv) {
  for (int of = 0; of < kStreams; ++of) {
    CUDA_CHECK(cudaMalloc(&memory[of], kBytes));
    CUDA_CHECK(cudaMemset(memory[of], of, kBytes));
    CUDA_CHECK(cudaStreamCreate(&streams[of]));
    CUDA_CHECK(cudaEventCreateWithFlags(&made[of], cudaEventDisableTiming));
  }
  CUDA_CHECK(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming));
  if (argc > 1) {
    const unsigned rounds = static_cast<unsigned>(strtoul(argv[1], nullptr, 10));
    for (unsigned round = 0; round < rounds; ++round) Round(round, false);
    printf("rounds are over\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
  }
  for (unsigned round = 0; round < 120; ++round) {
    const unsigned sum = Round(round, true);
    if (round % 6 == 0) printf("%u: %08x\n", round, sum);
  }
  return 0;
}

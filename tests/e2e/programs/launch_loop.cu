// A launch-bound loop, for scripts/bench replay: launch_loop KERNELS ITERATIONS
// stream|graph|varied|diverges
//
// An iteration is KERNELS small kernels and a read-back of what they wrote. stream: launched one by
// one; varied: the same, and an argument of each is another in every iteration; diverges: the same
// as stream, but from the ninth iteration on, which of two kernels each of the last sixteen
// launches is of is drawn anew each time; graph: captured once, and launched as a graph. Prints the
// time and the process's CPU time of ITERATIONS iterations, waits for a line on standard input, and
// goes on until that ends. A quarter as many go before and are not measured: another process may
// have used the device in the meantime.
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "check.h"

constexpr int kDrawn = 16;      // launches at the end of an iteration that diverges
constexpr unsigned kEqual = 8;  // iterations of which none diverges

__global__ void Add(unsigned* sum, unsigned value) {
  if (threadIdx.x == 0) *sum += value;
}

__global__ void AddProduct(unsigned* sum, unsigned value, unsigned long long factor) {
  if (threadIdx.x == 0) *sum += value * static_cast<unsigned>(factor);
}

static double MillisecondsOf(long seconds, long nanoseconds) {
  return seconds * 1e3 + nanoseconds * 1e-6;
}

static double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return MillisecondsOf(now.tv_sec, now.tv_nsec);
}

static double CpuTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return MillisecondsOf(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec,
                        (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int kernels = static_cast<int>(strtol(argv[1], nullptr, 10));
  const int iterations = static_cast<int>(strtol(argv[2], nullptr, 10));
  const bool graph = strcmp(argv[3], "graph") == 0, varied = strcmp(argv[3], "varied") == 0;
  const bool diverges = strcmp(argv[3], "diverges") == 0;
  unsigned *sum, expected = 0, found = 0, draw = 0;
  cudaStream_t stream;
  cudaGraphExec_t exec = nullptr;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMalloc(&sum, sizeof *sum));
  CUDA_CHECK(cudaMemset(sum, 0, sizeof *sum));
  if (graph) {
    cudaGraph_t captured;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < kernels; ++i) Add<<<1, 32, 0, stream>>>(sum, 1);
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
    CUDA_CHECK(cudaGraphInstantiate(&exec, captured, 0));
  }
  unsigned round = 0;
  char line[16];
  do {
    double begin = 0, cpu_begin = 0;
    for (int iteration = -iterations / 4; iteration < iterations; ++iteration, ++round) {
      if (iteration == 0) {
        begin = Now();
        cpu_begin = CpuTime();
      }
      if (graph) CUDA_CHECK(cudaGraphLaunch(exec, stream));
      if (round >= kEqual) draw = draw * 1664525u + 1013904223u;
      for (int i = 0; !graph && i < kernels; ++i) {
        const int left = kernels - i;
        if (diverges && left <= kDrawn && (draw >> (31 - left) & 1) != 0) {
          AddProduct<<<1, 32, 0, stream>>>(sum, 1, 1);
        } else {
          Add<<<1, 32, 0, stream>>>(sum, varied ? round + i : 1);
          expected += varied ? round + i - 1 : 0;
        }
      }
      expected += kernels;
      CUDA_CHECK(cudaMemcpyAsync(&found, sum, sizeof found, cudaMemcpyDeviceToHost, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      if (found != expected) {
        fprintf(stderr, "iteration %u: %u where %u is right\n", round, found, expected);
        return 1;
      }
    }
    printf("time: %d iterations %.3f ms, cpu %.3f ms\n", iterations, Now() - begin,
           CpuTime() - cpu_begin);
    fflush(stdout);
  } while (fgets(line, sizeof line, stdin) != nullptr);
  return 0;
}

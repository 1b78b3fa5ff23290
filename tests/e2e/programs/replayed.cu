// Rounds of iterations that repeat, and between them changes of what a replay stands on:
// replayed ROUNDS device|lane|varied|last|storm|scratch [step].
//
// A round is kIterations equal iterations: launches on two streams with an event between, a fill
// and a read-back. Rounds take turns: nothing changes; the module goes and another comes, whose
// kernel of the same name computes something else; memory is freed and allocated again; a stream is
// another one. lane: with memory besides that lives for an iteration; varied: every launch has an
// argument of its own in every iteration; last: the last launch has; storm: an upload behind the
// launches has another length in every iteration; scratch: eight branches use one buffer in turn.
// That buffer is larger each time that the program allocates it again. The program allocates 2 MiB
// more before the second round of scratch. With `step` the program waits for a byte on standard
// input before each round. For each 'a' it first does the last iteration kIterations times more,
// and says "again" on standard error: that changes no byte of scratch.
#include <string.h>
#include <unistd.h>

#include "check.h"

constexpr int kCount = 1 << 10;
constexpr int kIterations = 12;
constexpr char kAgain = 'a';
constexpr int kLaunches = 12;
constexpr int kBranches = 8;
constexpr int kMoreCount = 1 << 19;  // a range of its own

// Step(from, to, number): to[i] = from[i] * FACTOR + number, a block of kCount / 4 threads.
constexpr char kModule[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry Step(.param .u64 from, .param .u64 to, .param .u32 number) {\n"
    " .reg .u32 %%r<8>;\n .reg .u64 %%d<8>;\n"
    " ld.param.u64 %%d1, [from];\n ld.param.u64 %%d2, [to];\n ld.param.u32 %%r1, [number];\n"
    " cvta.to.global.u64 %%d1, %%d1;\n cvta.to.global.u64 %%d2, %%d2;\n"
    " mov.u32 %%r2, %%tid.x;\n mov.u32 %%r3, %%ctaid.x;\n mad.lo.u32 %%r2, %%r3, %d, %%r2;\n"
    " mul.wide.u32 %%d3, %%r2, 4;\n add.u64 %%d1, %%d1, %%d3;\n add.u64 %%d2, %%d2, %%d3;\n"
    " ld.global.u32 %%r4, [%%d1];\n mad.lo.u32 %%r4, %%r4, %u, %%r1;\n"
    " st.global.u32 [%%d2], %%r4;\n ret;\n}\n";

__global__ void Mix(const unsigned* from, unsigned* to, unsigned number) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = (from[i] ^ number) * 16777619u + (from[(i + 1) % kCount] >> 7) + i;
}

__global__ void Layer(const unsigned* from, unsigned* to, int count, unsigned number) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] * 16777619u + number;
}

// What the branches have made, and what the last of them has left in the scratch buffer.
__global__ void Fold(const unsigned* results, const unsigned* scratch, unsigned* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = scratch[i];
  for (int branch = 0; branch < kBranches; ++branch) sum = sum * 31 + results[branch * kCount + i];
  to[i] = sum;
}

struct Program {
  unsigned *a, *b, *sum, *results, *more, host[kCount];
  cudaStream_t streams[2];
  cudaEvent_t event;
  CUmodule module = nullptr;
  CUfunction step;
  bool lane, varied, last, storm, scratch;

  void LoadModule(unsigned factor) {
    char text[2 * sizeof kModule];
    snprintf(text, sizeof text, kModule, kCount / 4, factor);
    if (module != nullptr) CHECK(cuModuleUnload(module));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&step, module, "Step"));
  }
  void Allocate(unsigned** words, int value, int count = kCount) {
    CUDA_CHECK(cudaMalloc(words, count * sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(*words, value, count * sizeof(unsigned)));
  }
  void Change(long round) {
    if (scratch && round == 1) Allocate(&more, 0, kMoreCount);
    if (round % 4 == 1) LoadModule(3 + 2 * static_cast<unsigned>(round));
    if (round % 4 == 2) {
      CUDA_CHECK(cudaFree(b));
      Allocate(&b, static_cast<int>(round), kCount + (scratch ? 96 * static_cast<int>(round) : 0));
    }
    if (round % 4 == 3) {
      CUDA_CHECK(cudaStreamDestroy(streams[1]));
      CUDA_CHECK(cudaStreamCreate(&streams[1]));
    }
  }
  void Step(unsigned* from, unsigned* to, unsigned number) {
    void* arguments[] = {&from, &to, &number};
    CHECK(cuLaunchKernel(step, 4, 1, 1, kCount / 4, 1, 1, 0, streams[0], arguments, nullptr));
  }
  void Branches(unsigned number) {
    CUDA_CHECK(cudaMemsetAsync(a, static_cast<int>(number % 251), sizeof host, streams[0]));
    for (int branch = 0; branch < kBranches; ++branch) {
      Layer<<<4, kCount / 4, 0, streams[0]>>>(a, b, kCount, branch);
      Layer<<<4, kCount / 4, 0, streams[0]>>>(b, results + branch * kCount, kCount, branch);
    }
    Fold<<<4, kCount / 4, 0, streams[0]>>>(results, b, sum);
  }
  void Chain(unsigned* other, unsigned number) {
    CUDA_CHECK(cudaMemsetAsync(sum, 0, kCount * sizeof(unsigned), streams[0]));
    for (int i = 0; i < kLaunches; ++i) {
      const bool differs = varied || (last && i + 1 == kLaunches);
      const unsigned argument = differs ? number * kLaunches + i : i;
      if (i % 3 == 0) {
        Mix<<<4, kCount / 4, 0, streams[0]>>>(a, i == 0 ? other : sum, argument);
      } else if (i % 3 == 1) {
        Step(i == 1 ? other : sum, sum, argument);
      } else {
        Mix<<<4, kCount / 4, 0, streams[0]>>>(sum, a, argument);
      }
    }
  }
  void Iterate(unsigned number) {
    unsigned* other = b;
    if (lane) CUDA_CHECK(cudaMalloc(&other, kCount * sizeof(unsigned)));
    if (scratch) {
      Branches(number);
    } else {
      Chain(other, number);
    }
    if (storm) {
      const size_t bytes = (1 + number % kCount) * sizeof(unsigned);
      CUDA_CHECK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, streams[0]));
    }
    CUDA_CHECK(cudaEventRecord(event, streams[0]));
    CUDA_CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    for (int i = 0; i < 4; ++i) Mix<<<4, kCount / 4, 0, streams[1]>>>(sum, b, i);
    CUDA_CHECK(cudaMemcpyAsync(host, b, sizeof host, cudaMemcpyDeviceToHost, streams[1]));
    CUDA_CHECK(cudaStreamSynchronize(streams[1]));
    if (lane) CUDA_CHECK(cudaFree(other));
  }
  unsigned Hash() const {
    unsigned hash = 2166136261u;
    for (unsigned word : host) hash = (hash ^ word) * 16777619u;
    return hash;
  }
};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long rounds = strtol(argv[1], nullptr, 10);
  const bool step = argc > 3;
  static Program program;
  program.lane = strcmp(argv[2], "lane") == 0;
  program.varied = strcmp(argv[2], "varied") == 0;
  program.last = strcmp(argv[2], "last") == 0;
  program.storm = strcmp(argv[2], "storm") == 0;
  for (cudaStream_t& stream : program.streams) CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaEventCreateWithFlags(&program.event, cudaEventDisableTiming));
  program.scratch = strcmp(argv[2], "scratch") == 0;
  for (unsigned** words : {&program.a, &program.b, &program.sum}) program.Allocate(words, 1);
  if (program.scratch) program.Allocate(&program.results, 1, kBranches * kCount);
  CUDA_CHECK(cudaDeviceSynchronize());
  program.LoadModule(3);
  printf("started\n");
  fflush(stdout);
  unsigned number = 0;
  for (long round = 0; round < rounds; ++round) {
    char byte = 0;
    if (step && read(0, &byte, 1) < 0) return 2;
    while (byte == kAgain && round != 0) {
      for (int i = 0; i < kIterations; ++i) program.Iterate(number - 1);
      fprintf(stderr, "again\n");
      byte = 0;
      if (read(0, &byte, 1) < 0) return 2;
    }
    program.Change(round);
    for (int i = 0; i < kIterations; ++i) program.Iterate(number++);
    printf("round %ld: %08x\n", round, program.Hash());
    fflush(stdout);
  }
  CHECK(cuModuleUnload(program.module));
  printf("done\n");
  return 0;
}

// Iterations of random launches, which depend on each other in random ways, from a seed: buffers
// that are read, written and updated, parts of buffers, variables, several streams with events,
// memory that is freed and allocated again in another size, and arguments that change. Some
// launches take long, so that one that runs too early or too late shows in the bytes. Prints sums.
#include <stdint.h>

#include <thread>
#include <vector>

#include "check.h"

constexpr int kBuffers = 10;
constexpr int kCount = 256;  // elements of a buffer, at least
constexpr int kThreads = 64;
constexpr int kIterations = 400;  // of each program: some repeat unchanged for long

__device__ unsigned shared_total;

__device__ unsigned Busy(unsigned value, unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) value = value * 1664525u + 1013904223u;
  return value;
}

__global__ void Map(const unsigned* from, unsigned* to, unsigned number, unsigned turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = Busy(from[i] + number + i, turns);
}
__global__ void Join(const unsigned* a, const unsigned* b, unsigned* to, unsigned turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = Busy(a[i], turns) ^ b[kThreads - 1 - i % kThreads];
}
__global__ void Update(unsigned* values, unsigned number) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + number;
}
__global__ void Sum(const unsigned* from, unsigned* to) { atomicAdd(to, from[threadIdx.x]); }
__global__ void Total(const unsigned* from) { atomicXor(&shared_total, from[threadIdx.x]); }
__global__ void FromTotal(unsigned* to) { to[threadIdx.x] = shared_total + threadIdx.x; }
// The address comes from memory.
__global__ void Chase(unsigned** table, unsigned number) { table[0][threadIdx.x] += number; }

struct Random {
  uint64_t state;
  unsigned Below(unsigned bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(state >> 33) % bound;
  }
};

struct Op {
  unsigned kind, a, b, to, part, number, turns, stream;
};

class Program {
 public:
  Program(uint64_t seed, bool with_variable) : random_{seed}, with_variable_(with_variable) {
    for (unsigned i = 0; i < kBuffers; ++i) Allocate(i, kCount);
    for (cudaStream_t& stream : streams_)
      CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    CUDA_CHECK(cudaMalloc(&table_, sizeof(unsigned*)));
    const unsigned ops = 12 + random_.Below(40);
    const bool one_stream = random_.Below(3) != 0;
    for (unsigned i = 0; i < ops; ++i) {
      ops_.push_back({random_.Below(20), random_.Below(kBuffers), random_.Below(kBuffers),
                      random_.Below(kBuffers), random_.Below(2), random_.Below(100),
                      random_.Below(8) == 0 ? 3000u : random_.Below(10),
                      one_stream ? 0 : random_.Below(2)});
    }
  }
  ~Program() {
    for (unsigned* buffer : buffers_) CUDA_CHECK(cudaFree(buffer));
    CUDA_CHECK(cudaFree(table_));
    for (cudaStream_t stream : streams_) CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaEventDestroy(event_));
  }

  void Run() {
    for (int i = 0; i < kIterations; ++i) {
      if (i >= kIterations / 4 && random_.Below(50) == 0) Change();
      for (const Op& op : ops_) Do(op);
      for (cudaStream_t stream : streams_) CUDA_CHECK(cudaStreamSynchronize(stream));
    }
  }
  unsigned Sums() {
    unsigned sum = 0;
    std::vector<unsigned> host;
    for (unsigned i = 0; i < kBuffers; ++i) {
      host.resize(counts_[i]);
      CUDA_CHECK(cudaMemcpy(host.data(), buffers_[i], 4 * counts_[i], cudaMemcpyDeviceToHost));
      for (unsigned value : host) sum = sum * 31 + value;
    }
    return sum;
  }

 private:
  void Allocate(unsigned i, unsigned count) {
    CUDA_CHECK(cudaMalloc(&buffers_[i], 4 * count));
    CUDA_CHECK(cudaMemset(buffers_[i], static_cast<int>(i + 1), 4 * count));
    CUDA_CHECK(cudaDeviceSynchronize());
    counts_[i] = count;
  }

  // What a proof may rest on.
  void Change() {
    const unsigned i = random_.Below(kBuffers), k = random_.Below(kBuffers);
    switch (random_.Below(4)) {
      case 0: {  // often at the same address
        const unsigned count = kCount * (1 + random_.Below(3));
        CUDA_CHECK(cudaFree(buffers_[i]));
        Allocate(i, count);
        break;
      }
      case 1:
        std::swap(buffers_[i], buffers_[k]);
        std::swap(counts_[i], counts_[k]);
        break;
      case 2:
        ops_[random_.Below(static_cast<unsigned>(ops_.size()))].to = i;
        break;
      default:
        ops_[random_.Below(static_cast<unsigned>(ops_.size()))].number = i;
    }
  }

  // Each stream has buffers of its own; the variable and the table are the first stream's.
  void Do(const Op& op) {
    const cudaStream_t stream = streams_[op.stream];
    unsigned *const a = Own(op.a, op.stream), *const b = Own(op.b, op.stream),
                    *const to = Own(op.to, op.stream);
    unsigned* const part = to + op.part * (kCount / 2);
    if (op.kind == 0) {
      Sum<<<1, kThreads, 0, stream>>>(a, to + kCount - 1);
    } else if (op.kind <= 3) {
      if (op.stream == 0) DoOfFirst(op);
    } else if (op.kind == 4) {
      if (op.part == 0 && a != to) {
        CUDA_CHECK(cudaMemcpyAsync(to, a, 4 * kThreads, cudaMemcpyDeviceToDevice, stream));
      }
    } else if (op.kind == 5) {
      if (op.part == 0) Meet();
    } else if (op.kind <= 9) {
      Update<<<2, kThreads, 0, stream>>>(part, op.number);
    } else if (op.kind <= 13 && b != to) {
      Join<<<1, kThreads, 0, stream>>>(a, b, part, op.turns);
    } else {
      Map<<<2, kThreads, 0, stream>>>(a, part, op.number, op.turns);
    }
  }
  void DoOfFirst(const Op& op) {
    const cudaStream_t stream = streams_[0];
    unsigned* const to = Own(op.to, 0);
    if (op.kind == 1 && with_variable_) {
      Total<<<1, kThreads, 0, stream>>>(Own(op.a, 0));
    } else if (op.kind == 2 && with_variable_) {
      FromTotal<<<1, kThreads, 0, stream>>>(to);
    } else if (op.part == 0) {
      CUDA_CHECK(cudaMemcpyAsync(table_, &to, sizeof(unsigned*), cudaMemcpyHostToDevice, stream));
      Chase<<<1, kThreads, 0, stream>>>(table_, op.number);
    }
  }
  void Meet() {
    CUDA_CHECK(cudaEventRecord(event_, streams_[0]));
    CUDA_CHECK(cudaStreamWaitEvent(streams_[1], event_, 0));
    CUDA_CHECK(cudaEventRecord(event_, streams_[1]));
    CUDA_CHECK(cudaStreamWaitEvent(streams_[0], event_, 0));
  }
  unsigned* Own(unsigned buffer, unsigned stream) {
    return buffers_[(buffer % (kBuffers / 2)) * 2 + stream];
  }

  Random random_;
  const bool with_variable_;
  unsigned* buffers_[kBuffers] = {};
  unsigned counts_[kBuffers] = {};
  unsigned** table_ = nullptr;
  cudaStream_t streams_[2] = {};
  cudaEvent_t event_ = nullptr;
  std::vector<Op> ops_;
};

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t seeds = argc > 2 ? strtoull(argv[2], nullptr, 10) : 6;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    Program program(seed, true);
    program.Run();
    printf("seed %llu: %08x\n", static_cast<unsigned long long>(seed), program.Sums());
    fflush(stdout);
  }
  unsigned sums[2] = {};
  std::thread other([&] {
    Program program(first + 1000, false);
    program.Run();
    sums[1] = program.Sums();
  });
  Program program(first + 2000, false);
  program.Run();
  sums[0] = program.Sums();
  other.join();
  printf("two threads: %08x %08x\n", sums[0], sums[1]);
  return 0;
}

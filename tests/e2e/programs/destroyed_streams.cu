// Work on a stream that the program destroys is done all the same, and whatever waits for the
// device waits for it: frees, copies, events, the next stream in its place, the program's end.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const unsigned kCount = 4096;
static const unsigned long long kLateNs = 300000000ull;
static const size_t kBytes = size_t{64} << 20;

__global__ void Late(unsigned long long ns, unsigned* values, unsigned value) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
  for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x) values[i] = value;
}

static void Destroyed(unsigned flags, unsigned* values, unsigned value, cudaEvent_t event) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, flags));
  Late<<<1, 32, 0, stream>>>(kLateNs, values, value);
  CUDA_CHECK(cudaGetLastError());
  if (event != nullptr) CUDA_CHECK(cudaEventRecord(event, stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

static unsigned* Fresh(size_t bytes) {
  unsigned* values = nullptr;
  CUDA_CHECK(cudaMalloc((void**)&values, bytes));
  return values;
}

static unsigned First(const unsigned* values, cudaStream_t stream) {
  unsigned first = 0;
  CUDA_CHECK(cudaMemcpyAsync(&first, values, sizeof first, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  return first;
}

// Large and small: a range of its own, and a block of one that stays. After work on one stream and
// on two: the stream that uses the memory next is not made yet.
static void Free(size_t bytes, cudaStream_t second) {
  unsigned* const values = Fresh(bytes);
  if (second != nullptr) CUDA_CHECK(cudaMemsetAsync(values, 2, sizeof(unsigned), second));
  Destroyed(cudaStreamNonBlocking, values, 7, nullptr);
  CUDA_CHECK(cudaFree(values));
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  unsigned* const others = Fresh(bytes);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMemsetAsync(others, 1, kCount * sizeof(unsigned), stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("freed, taken again: %#x\n", First(others, stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFree(others));
}

static void Waits(unsigned* values) {
  cudaStream_t other;
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Destroyed(cudaStreamNonBlocking, values, 8, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("device synchronised: %u\n", First(values, other));

  cudaEvent_t event;
  CUDA_CHECK(cudaEventCreate(&event));
  Destroyed(cudaStreamNonBlocking, values, 9, event);
  CUDA_CHECK(cudaEventSynchronize(event));
  printf("event reached: %u, %d\n", First(values, other), cudaEventQuery(event));
  Destroyed(cudaStreamNonBlocking, values, 10, event);
  CUDA_CHECK(cudaStreamWaitEvent(other, event, 0));
  printf("a stream behind the event: %u\n", First(values, other));
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(other));
}

static void Places(unsigned* values) {
  cudaEvent_t events[8];
  for (unsigned i = 0; i < 8; ++i) {
    CUDA_CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    Destroyed(cudaStreamNonBlocking, values + i * kCount, i, events[i]);
  }
  unsigned sum = 0;
  for (unsigned i = 8; i-- != 0;) {
    CUDA_CHECK(cudaEventSynchronize(events[i]));
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    sum = sum * 10 + First(values + i * kCount, stream);
    CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaEventDestroy(events[i]));
  }
  printf("streams in each other's place: %u\n", sum);
}

static void Child(const char* mode) {
  unsigned* const values = Fresh(kBytes);
  Destroyed(cudaStreamDefault, values, 7, nullptr);
  // The first use of the default stream comes after a blocking stream that is gone.
  if (strcmp(mode, "default") == 0) {
    printf("default stream: %u\n", First(values, nullptr));
    CUDA_CHECK(cudaFree(values));
    fflush(stdout);
    _exit(0);
  }
  if (strcmp(mode, "kill") == 0) raise(SIGKILL);
  _exit(0);
}

static void RunChild(const char* mode) {
  const pid_t child = fork();
  if (child == 0) Child(mode);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%s: exit %d, signal %d\n", mode, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  fflush(stdout);
}

int main() {
  RunChild("default");
  RunChild("exit");
  RunChild("kill");
  cudaStream_t second;
  CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  for (size_t bytes : {kBytes, kCount * sizeof(unsigned)}) {
    Free(bytes, nullptr);
    Free(bytes, second);
  }
  CUDA_CHECK(cudaStreamDestroy(second));
  unsigned* const values = Fresh(8 * kCount * sizeof(unsigned));
  Waits(values);
  Places(values);
  CUDA_CHECK(cudaFree(values));
  printf("last error %d\n", cudaGetLastError());
  return 0;
}

// The program registers memory of its own with a device mapping. Kernels, copies and the program
// see the same bytes there; its other bytes in the pages stay, and its child has pages of its own.
// With the word "fault" a kernel faults while memory is registered: the memory stays the program's.
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void Scale(int* data, int count, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

static const int kCount = 100000;

static long Sum(const int* data) {
  long sum = 0;
  for (int i = 0; i < kCount; ++i) sum += data[i];
  return sum;
}

static int* Registered(unsigned flags, int** device) {
  int* const host = (int*)malloc((kCount + 8) * sizeof(int)) + 4;
  for (int i = -4; i < kCount + 4; ++i) host[i] = i;
  CUDA_CHECK(cudaHostRegister(host, kCount * sizeof(int), flags));
  CUDA_CHECK(cudaHostGetDevicePointer((void**)device, host, 0));
  printf("beside it: %d %d\n", host[-4], host[kCount + 3]);
  return host;
}

// One stream orders the kernels and copies of the device; the program reads the memory after them.
static void Ordered(unsigned flags) {
  int *device = nullptr, *other = nullptr;
  int* const host = Registered(flags, &device);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMalloc((void**)&other, kCount * sizeof(int)));
  for (int round = 0; round < 3; ++round) {
    Scale<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount, 2);
    CUDA_CHECK(cudaMemcpyAsync(other, host, kCount * sizeof(int), cudaMemcpyDefault, stream));
    Scale<<<(kCount + 255) / 256, 256, 0, stream>>>(other, kCount, 3);
    CUDA_CHECK(cudaMemcpyAsync(host, other, kCount * sizeof(int), cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    printf("sum %ld\n", Sum(host));
    host[round] = 1;
  }
  CUDA_CHECK(cudaMemcpy2D(other, 64, host + 1, 256, 32, 100, cudaMemcpyDefault));
  int back = 0;
  CUDA_CHECK(cudaMemcpy(&back, (char*)other + 64 * 99, sizeof back, cudaMemcpyDefault));
  printf("row %d\n", back == host[1 + 64 * 99]);
  cudaPointerAttributes seen;
  CUDA_CHECK(cudaPointerGetAttributes(&seen, host + 3));
  printf("type %d, host %d, device %d\n", seen.type, seen.hostPointer == host + 3,
         seen.devicePointer == device + 3);
  CUDA_CHECK(cudaHostUnregister(host));
  printf("again %d\n", cudaHostUnregister(host));
  printf("sum %ld, beside it: %d %d\n", Sum(host), host[-4], host[kCount + 3]);
  free(host - 4);
  CUDA_CHECK(cudaFree(other));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

// A child's writes are not its parent's, and it has its parent's bytes.
static void Forked() {
  int* device = nullptr;
  int* const host = Registered(cudaHostRegisterMapped, &device);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const long sum = Sum(host);
    memset(host - 4, 0, (kCount + 8) * sizeof(int));
    printf("child: sum %ld\n", sum);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  printf("child ended with %d\n", waitpid(child, &status, 0) == child ? status : -1);
  Scale<<<(kCount + 255) / 256, 256>>>(device, kCount, 5);
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("sum %ld, beside it: %d %d\n", Sum(host), host[-4], host[kCount + 3]);
  CUDA_CHECK(cudaHostUnregister(host));
  free(host - 4);
}

// The program unmaps what is registered. What it maps there next is left alone.
static void Unmapped() {
  const size_t bytes = 1 << 20;
  char* const first =
      (char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(first, 1, bytes);
  void* device = nullptr;
  CUDA_CHECK(cudaHostRegister(first, bytes, cudaHostRegisterMapped));
  CUDA_CHECK(cudaHostGetDevicePointer(&device, first, 0));
  munmap(first, bytes);
  char* const next = (char*)mmap(first, bytes / 2, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memset(next, 2, bytes / 2);
  CUDA_CHECK(cudaHostUnregister(first));
  printf("what came next: %d %d\n", next[0], next[bytes / 2 - 1]);
}

static void Faults() {
  int* device = nullptr;
  int* const host = Registered(cudaHostRegisterMapped, &device);
  Scale<<<1, 32>>>((int*)8, kCount, 2);
  printf("fault: %d\n", cudaDeviceSynchronize());
  printf("sum %ld, beside it: %d %d\n", Sum(host), host[-4], host[kCount + 3]);
  cudaHostUnregister(host);
  printf("sum %ld, beside it: %d %d\n", Sum(host), host[-4], host[kCount + 3]);
  free(host - 4);
}

int main(int argc, char**) {
  if (argc > 1) {
    Faults();
    return 0;
  }
  Ordered(cudaHostRegisterMapped);
  Ordered(cudaHostRegisterDefault);
  Forked();
  Unmapped();
  return 0;
}

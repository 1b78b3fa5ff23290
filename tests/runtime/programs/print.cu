// printf from a kernel arrives before the synchronisation returns.
#include "check.h"

__global__ void Say(int number, const char* unused) {
  printf("thread %d of %d says %5.2f %s %c %llx\n", threadIdx.x, blockDim.x, number * 0.5, "text",
         'c', 0x123456789abcdefull);
}

int main() {
  Say<<<1, 1>>>(3, nullptr);
  CHECK(cudaDeviceSynchronize());
  std::puts("ok");
}

// Device variables: initialised, constant, arrays; copies by offset.
#include "check.h"

struct Pair {
  int a;
  double b;
};

__device__ int counter = 5;
__device__ Pair pairs[3] = {{1, 1.5}, {2, 2.5}, {3, 3.5}};
__constant__ float weights[4] = {1, 2, 3, 4};
static __device__ float results[4];

__global__ void Use() {
  results[threadIdx.x] = weights[threadIdx.x] * static_cast<float>(pairs[1].b) + counter;
  if (threadIdx.x == 0) pairs[2].a = counter;
}

int main() {
  int value = 0;
  CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  EXPECT(value == 5);
  value = 7;
  CHECK(cudaMemcpyToSymbol(counter, &value, sizeof value));
  const float last = 10;
  CHECK(cudaMemcpyToSymbol(weights, &last, sizeof last, 3 * sizeof last));
  Use<<<1, 4>>>();
  float out[4];
  CHECK(cudaMemcpyFromSymbol(out, results, sizeof out));
  EXPECT(out[0] == 9.5f && out[1] == 12 && out[2] == 14.5f && out[3] == 32);
  Pair pair;
  CHECK(cudaMemcpyFromSymbol(&pair, pairs, sizeof pair, 2 * sizeof pair));
  EXPECT(pair.a == 7 && pair.b == 3.5);

  void* address = nullptr;
  size_t bytes = 0;
  CHECK(cudaGetSymbolAddress(&address, pairs));
  CHECK(cudaGetSymbolSize(&bytes, pairs));
  EXPECT(bytes == 3 * sizeof(Pair));
  CHECK(cudaMemcpy(&pair, address, sizeof pair, cudaMemcpyDeviceToHost));
  EXPECT(pair.a == 1 && pair.b == 1.5);

  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyToSymbolAsync(counter, &value, sizeof value, 0, cudaMemcpyHostToDevice, stream));
  Use<<<1, 4, 0, stream>>>();
  CHECK(cudaMemcpyFromSymbolAsync(out, results, sizeof out, 0, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(out[3] == 32);
  CHECK(cudaStreamDestroy(stream));

  EXPECT_ERROR(cudaErrorInvalidValue,
               cudaMemcpyToSymbol(weights, &last, sizeof last, 4 * sizeof last));
  EXPECT_ERROR(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &value));
  std::puts("ok");
}

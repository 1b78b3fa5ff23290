// Every way to get, fill, copy and give back memory that programs commonly use.
#include <string.h>

#include "check.h"

constexpr int kCount = 3000;
static int host[kCount];

static unsigned Sum(const int* values) {
  unsigned sum = 0;
  for (int i = 0; i < kCount; ++i) sum = sum * 31 + static_cast<unsigned>(values[i]);
  return sum;
}

__global__ void AddOne(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}

static void Fills() {
  int* device;
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  CUDA_CHECK(cudaMemset(device, 0x11, sizeof(host)));
  CUDA_CHECK(cudaMemset(device + 5, 0x7f, 40));
  CHECK(cuMemsetD32(reinterpret_cast<CUdeviceptr>(device + 100), 77, 50));
  CHECK(cuMemsetD16(reinterpret_cast<CUdeviceptr>(device + 200), 0xabcd, 50));
  CUDA_CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  printf("fills %08x\n", Sum(host));
  CUDA_CHECK(cudaFree(device));
}

static void Copies() {
  int *first, *second;
  for (int i = 0; i < kCount; ++i) host[i] = i * i;
  CUDA_CHECK(cudaMalloc(&first, sizeof(host)));
  CUDA_CHECK(cudaMalloc(&second, sizeof(host)));
  CUDA_CHECK(cudaMemcpy(first, host, sizeof(host), cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(second + 100, first, 1000 * sizeof(int), cudaMemcpyDeviceToDevice));
  CUDA_CHECK(cudaMemcpy(second, first + 2000, 100 * sizeof(int), cudaMemcpyDeviceToDevice));
  CUDA_CHECK(
      cudaMemcpy(second + 1100, host, (kCount - 1100) * sizeof(int), cudaMemcpyHostToDevice));
  memset(host, 0, sizeof(host));
  CUDA_CHECK(cudaMemcpy(host, second, sizeof(host), cudaMemcpyDeviceToHost));
  printf("copies %08x\n", Sum(host));
  CUDA_CHECK(cudaFree(first));
  CUDA_CHECK(cudaFree(second));
  CUDA_CHECK(cudaFree(nullptr));
}

static void Rows() {
  int* device;
  size_t pitch = 0;
  for (int i = 0; i < kCount; ++i) host[i] = i ^ 0x55;
  CUDA_CHECK(cudaMallocPitch(&device, &pitch, 50 * sizeof(int), 60));
  printf("pitch %s\n", pitch >= 200 && pitch % 32 == 0 ? "aligned" : "odd");
  CUDA_CHECK(cudaMemset2D(device, pitch, 3, 50 * sizeof(int), 60));
  CUDA_CHECK(cudaMemcpy2D(device, pitch, host, 50 * sizeof(int), 40 * sizeof(int), 30,
                          cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy2D(host, 50 * sizeof(int), device, pitch, 50 * sizeof(int), 60,
                          cudaMemcpyDeviceToHost));
  printf("rows %08x\n", Sum(host));
  CUDA_CHECK(cudaFree(device));
}

static void Pinned() {
  int *pinned, *mapped, *device;
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(host)));
  CUDA_CHECK(cudaHostAlloc(&mapped, sizeof(host), cudaHostAllocMapped));
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  for (int i = 0; i < kCount; ++i) pinned[i] = mapped[i] = 3 * i;
  CUDA_CHECK(
      cudaMemcpyAsync(device, pinned, sizeof(host), cudaMemcpyHostToDevice, cudaStreamLegacy));
  AddOne<<<(kCount + 127) / 128, 128>>>(device, kCount);
  CUDA_CHECK(
      cudaMemcpyAsync(pinned, device, sizeof(host), cudaMemcpyDeviceToHost, cudaStreamLegacy));
  int* seen_by_device;
  CUDA_CHECK(cudaHostGetDevicePointer(&seen_by_device, mapped, 0));
  AddOne<<<(kCount + 127) / 128, 128>>>(seen_by_device, kCount);
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("pinned %08x mapped %08x\n", Sum(pinned), Sum(mapped));
  CUDA_CHECK(cudaFreeHost(pinned));
  CUDA_CHECK(cudaFreeHost(mapped));
  CUDA_CHECK(cudaFree(device));
}

static void StreamOrdered() {
  cudaStream_t stream;
  int *first, *second;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMallocAsync(&first, sizeof(host), stream));
  CUDA_CHECK(cudaMallocAsync(&second, sizeof(host), stream));
  CUDA_CHECK(cudaMemsetAsync(first, 0, sizeof(host), stream));
  AddOne<<<(kCount + 127) / 128, 128, 0, stream>>>(first, kCount);
  CUDA_CHECK(cudaMemcpyAsync(second, first, sizeof(host), cudaMemcpyDeviceToDevice, stream));
  CUDA_CHECK(cudaFreeAsync(first, stream));
  AddOne<<<(kCount + 127) / 128, 128, 0, stream>>>(second, kCount);
  CUDA_CHECK(cudaMemcpyAsync(host, second, sizeof(host), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaFreeAsync(second, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
  printf("stream ordered %08x\n", Sum(host));
}

static void Information() {
  int* device;
  size_t free_before = 0, free_after = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_before, &total));
  CUDA_CHECK(cudaMalloc(&device, 64 << 20));
  CUDA_CHECK(cudaMemGetInfo(&free_after, &total));
  // Free memory is the device's: neighbours take and give a little of it in between.
  printf("free shrank by about 64 MiB: %s\n",
         free_before - free_after >= 48u << 20 && free_before > free_after ? "yes" : "no");
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, device + 7));
  printf("device pointer: type %d, device %d, itself %d\n", attributes.type, attributes.device,
         attributes.devicePointer == device + 7);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, host));
  printf("host pointer: type %d\n", attributes.type);
  CUDA_CHECK(cudaFree(device));
}

int main() {
  Fills();
  Copies();
  Rows();
  Pinned();
  StreamOrdered();
  Information();
  return 0;
}

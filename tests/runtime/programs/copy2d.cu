// Copies and fills of rectangles and boxes in pitched memory.
#include <vector>

#include "check.h"

__global__ void Double(char* rows, size_t pitch, int width) {
  rows[blockIdx.x * pitch + threadIdx.x] *= 2;
}

namespace {

void Rectangles() {
  constexpr size_t kWidth = 37, kHeight = 11;
  std::vector<char> in(kWidth * kHeight), out(kWidth * kHeight);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i % 60);
  char* device;
  size_t pitch;
  CHECK(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
  EXPECT(pitch >= kWidth);
  CHECK(cudaMemcpy2D(device, pitch, in.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
  Double<<<kHeight, kWidth>>>(device, pitch, kWidth);
  CHECK(cudaMemcpy2D(out.data(), kWidth, device, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < in.size(); ++i) EXPECT(out[i] == in[i] * 2);
  CHECK(cudaMemset2D(device, pitch, 9, kWidth - 1, kHeight - 1));
  CHECK(cudaMemcpy2DAsync(out.data(), kWidth, device, pitch, kWidth, kHeight,
                          cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < kWidth; ++x) {
      const bool filled = x < kWidth - 1 && y < kHeight - 1;
      EXPECT(out[y * kWidth + x] == (filled ? 9 : in[y * kWidth + x] * 2));
    }
  }
  EXPECT_ERROR(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, kWidth - 1, in.data(), kWidth,
                                                        kWidth, kHeight, cudaMemcpyHostToDevice));
  CHECK(cudaFree(device));
}

void Boxes() {
  const cudaExtent extent = make_cudaExtent(20, 6, 5);
  std::vector<char> in(20 * 6 * 5), out(20 * 6 * 5, 0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i % 100);
  cudaPitchedPtr device;
  CHECK(cudaMalloc3D(&device, extent));
  cudaMemcpy3DParms params = {};
  params.srcPtr = make_cudaPitchedPtr(in.data(), 20, 20, 6);
  params.dstPtr = device;
  params.extent = extent;
  params.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&params));
  CHECK(cudaMemset3D(device, 77, make_cudaExtent(20, 2, 5)));
  params.srcPtr = device;
  params.srcPos = make_cudaPos(1, 1, 1);
  params.dstPtr = make_cudaPitchedPtr(out.data(), 20, 20, 6);
  params.dstPos = make_cudaPos(0, 0, 0);
  params.extent = make_cudaExtent(3, 2, 4);
  params.kind = cudaMemcpyDefault;
  CHECK(cudaMemcpy3D(&params));
  for (int z = 0; z < 4; ++z) {
    for (int x = 0; x < 3; ++x) {
      EXPECT(out[z * 120 + x] == 77);                                       // row 1 was filled
      EXPECT(out[z * 120 + 20 + x] == in[(z + 1) * 120 + 2 * 20 + x + 1]);  // row 2 was not
    }
  }
  CHECK(cudaFree(device.ptr));
}

}  // namespace

int main() {
  Rectangles();
  Boxes();
  std::puts("ok");
}

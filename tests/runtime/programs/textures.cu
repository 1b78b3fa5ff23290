// Arrays, textures and surfaces as nvcc compiles them.
#include "check.h"

constexpr int kWidth = 8, kHeight = 2;

__global__ void Read(cudaTextureObject_t texture, cudaSurfaceObject_t surface, float* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  const float v = (y + 0.5f) / kHeight;
  surf2Dwrite(2 * tex2D<float>(texture, (x + 0.5f) / kWidth, v), surface, x * 4, y);
  out[y * kWidth + x] = tex2D<float>(texture, (x + 1.0f) / kWidth, v);
}

__global__ void Fetch(cudaTextureObject_t texture, uchar4* out) {
  out[threadIdx.x] = tex1Dfetch<uchar4>(texture, threadIdx.x);
}

__global__ void Layers(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(texture, 0.5f, 0.5f, threadIdx.x);
}

namespace {

cudaTextureObject_t Texture(const cudaResourceDesc& resource, cudaTextureFilterMode filter,
                            bool normalized) {
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeWrap;
  description.filterMode = filter;
  description.normalizedCoords = normalized;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

cudaResourceDesc Of(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

void FilteredAndStored() {
  float texels[kHeight][kWidth], seen[kHeight][kWidth];
  for (int i = 0; i < kHeight * kWidth; ++i) texels[i / kWidth][i % kWidth] = i;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t from, to;
  CHECK(cudaMallocArray(&from, &format, kWidth, kHeight));
  CHECK(cudaMallocArray(&to, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(from, 0, 0, texels, kWidth * 4, kWidth * 4, kHeight,
                            cudaMemcpyHostToDevice));
  const cudaTextureObject_t texture = Texture(Of(from), cudaFilterModeLinear, true);
  cudaSurfaceObject_t surface = 0;
  const cudaResourceDesc resource = Of(to);
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  float* out;
  CHECK(cudaMalloc(&out, sizeof seen));
  Read<<<1, dim3(kWidth, kHeight)>>>(texture, surface, out);
  CHECK(cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x)
      EXPECT(seen[y][x] == (texels[y][x] + texels[y][(x + 1) % kWidth]) / 2);
  }
  CHECK(cudaMemcpy2DFromArray(seen, kWidth * 4, to, 0, 0, kWidth * 4, kHeight,
                              cudaMemcpyDeviceToHost));
  for (int i = 0; i < kHeight * kWidth; ++i) EXPECT(seen[i / kWidth][i % kWidth] == 2 * i);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaFree(out));
  CHECK(cudaFreeArray(from));
  CHECK(cudaFreeArray(to));
}

void LinearMemory() {
  uchar4 texels[16], seen[17], *from, *to;
  for (int i = 0; i < 16; ++i) {
    texels[i] = make_uchar4(static_cast<unsigned char>(i), 1, 2, static_cast<unsigned char>(2 * i));
  }
  CHECK(cudaMalloc(&from, sizeof texels));
  CHECK(cudaMalloc(&to, sizeof seen));
  CHECK(cudaMemcpy(from, texels, sizeof texels, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = from;
  resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  resource.res.linear.sizeInBytes = sizeof texels;
  const cudaTextureObject_t texture = Texture(resource, cudaFilterModePoint, false);
  Fetch<<<1, 17>>>(texture, to);
  CHECK(cudaMemcpy(seen, to, sizeof seen, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 16; ++i) EXPECT(seen[i].x == i && seen[i].z == 2 && seen[i].w == 2 * i);
  EXPECT(seen[16].x == 0 && seen[16].y == 0);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
}

void Layered() {
  const cudaExtent extent = make_cudaExtent(1, 1, 4);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  float texels[] = {3, 5, 7, 9}, seen[4], *out;
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, cudaArrayLayered));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(texels, 4, 1, 1);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  const cudaTextureObject_t texture = Texture(Of(array), cudaFilterModePoint, false);
  CHECK(cudaMalloc(&out, sizeof seen));
  Layers<<<1, 4>>>(texture, out);
  CHECK(cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4; ++i) EXPECT(seen[i] == texels[i]);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFree(out));
  CHECK(cudaFreeArray(array));
}

}  // namespace

int main() {
  FilteredAndStored();
  LinearMemory();
  Layered();
  std::puts("ok");
}

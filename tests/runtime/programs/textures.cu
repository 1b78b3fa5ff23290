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

// What an object was made of can be asked for.
void Described() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<ushort2>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 4, 4, cudaArraySurfaceLoadStore));
  cudaResourceDesc resource = Of(array), seen;
  const cudaTextureObject_t texture = Texture(resource, cudaFilterModePoint, true);
  CHECK(cudaGetTextureObjectResourceDesc(&seen, texture));
  EXPECT(seen.resType == cudaResourceTypeArray && seen.res.array.array == array);
  cudaTextureDesc description;
  CHECK(cudaGetTextureObjectTextureDesc(&description, texture));
  EXPECT(description.addressMode[1] == cudaAddressModeWrap && description.normalizedCoords == 1);
  EXPECT(description.readMode == cudaReadModeElementType);
  cudaResourceViewDesc view;
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGetTextureObjectResourceViewDesc(&view, texture));
  cudaSurfaceObject_t surface = 0;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  CHECK(cudaGetSurfaceObjectResourceDesc(&seen, surface));
  EXPECT(seen.resType == cudaResourceTypeArray && seen.res.array.array == array);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaFreeArray(array));
  ushort2* linear;
  CHECK(cudaMalloc(&linear, 1024));
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {linear, format, 8, 2, 512};
  const cudaTextureObject_t flat = Texture(resource, cudaFilterModePoint, false);
  CHECK(cudaGetTextureObjectResourceDesc(&seen, flat));
  EXPECT(seen.resType == cudaResourceTypePitch2D && seen.res.pitch2D.devPtr == linear);
  EXPECT(seen.res.pitch2D.desc.x == 16 && seen.res.pitch2D.desc.y == 16 &&
         seen.res.pitch2D.desc.f == cudaChannelFormatKindUnsigned);
  EXPECT(seen.res.pitch2D.width == 8 && seen.res.pitch2D.pitchInBytes == 512);
  CHECK(cudaDestroyTextureObject(flat));
  CHECK(cudaFree(linear));
}

// Copies that run through the rows of arrays of different widths, and between planes.
void RunningCopies() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<short>();
  short texels[24], seen[24] = {};
  for (short i = 0; i < 24; ++i) texels[i] = i;
  cudaArray_t wide, narrow;
  CHECK(cudaMallocArray(&wide, &format, 8, 3));
  CHECK(cudaMallocArray(&narrow, &format, 6, 4));
  CHECK(cudaMemcpyToArray(wide, 0, 0, texels, 6, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToArray(wide, 6, 0, texels + 3, 42, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyArrayToArray(narrow, 0, 0, wide, 0, 0, 48));
  CHECK(cudaMemcpyFromArray(seen, narrow, 4, 0, 44, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 22; ++i) EXPECT(seen[i] == i + 2);
  CHECK(cudaMemcpy2DArrayToArray(narrow, 2, 1, wide, 4, 0, 4, 2));
  CHECK(cudaMemcpyFromArrayAsync(seen, narrow, 0, 0, 48, cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaDeviceSynchronize());
  const int moved[] = {0, 1, 2, 3, 4, 5, 6, 2, 3, 9, 10, 11, 12, 10, 11, 15, 16, 17};
  for (int i = 0; i < 18; ++i) EXPECT(seen[i] == moved[i]);
  EXPECT_ERROR(cudaErrorInvalidValue,
               cudaMemcpyToArray(wide, 16, 0, texels, 2, cudaMemcpyHostToDevice));
  CHECK(cudaFreeArray(wide));
  CHECK(cudaFreeArray(narrow));
}

// A graph's copy says what it copies.
void CopyNode() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  float texels[8];
  CHECK(cudaMallocArray(&array, &format, 8, 1));
  cudaMemcpy3DParms copy = {}, seen;
  copy.srcPtr = make_cudaPitchedPtr(texels, 16, 16, 1);
  copy.dstArray = array;
  copy.dstPos.x = 2;
  copy.extent = make_cudaExtent(4, 1, 1);
  copy.kind = cudaMemcpyHostToDevice;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy));
  CHECK(cudaGraphMemcpyNodeGetParams(node, &seen));
  EXPECT(seen.srcPtr.ptr == texels && seen.dstArray == array && seen.srcArray == nullptr);
  EXPECT(seen.dstPos.x == 2 && seen.extent.width == 4 && seen.kind == cudaMemcpyHostToDevice);
  CHECK(cudaGraphMemcpyNodeSetParams(node, &seen));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeArray(array));
}

}  // namespace

int main() {
  FilteredAndStored();
  LinearMemory();
  Layered();
  Described();
  RunningCopies();
  CopyNode();
  std::puts("ok");
}

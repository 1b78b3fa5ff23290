// Textures of arrays, of their levels and of linear memory, and surfaces that kernels change again
// and again; what is refused.
#include "boxes.h"

namespace {

__global__ void Sample(cudaTextureObject_t texture, float* out, int width, int height) {
  for (int i = threadIdx.x; i < width * height; i += blockDim.x) {
    const float4 value = tex2D<float4>(texture, (i % width + 0.3f) / width * 1.5f - 0.2f,
                                       (i / width + 0.6f) / height * 1.5f - 0.2f);
    out[i] = value.x + 10 * value.y + 100 * value.z;
  }
}

__global__ void SampleVolume(cudaTextureObject_t texture, float* out) {
  const int i = threadIdx.x;
  out[i] = tex3D<float>(texture, i * 0.21f, i * 0.11f, i * 0.07f);
}

__global__ void SampleLayers(cudaTextureObject_t layers, cudaTextureObject_t cube, float* out) {
  const int i = threadIdx.x;
  out[i] = tex2DLayered<float>(layers, i % 4 + 0.5f, i % 3 + 0.5f, i % 5);
  const float sides[] = {-1, 0.25f, 1};
  out[i] += 1000 * texCubemap<float>(cube, sides[i % 3], sides[i / 3 % 3], sides[(i + 1) % 3]);
}

__global__ void ReadLayers(cudaTextureObject_t layers, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(layers, threadIdx.x / 3 + 0.5f, 0.5f, threadIdx.x % 3);
}

__global__ void FetchLine(cudaTextureObject_t texture, int count, int* out) {
  const int i = threadIdx.x;
  const short2 value = tex1Dfetch<short2>(texture, i * 3 - 5);
  out[i] = value.x * 1000 + value.y + count;
}

__global__ void FetchRows(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x * 0.7f, threadIdx.x * 0.45f);
}

// Reads and changes: executed twice, it would give something else.
__global__ void Grow(cudaSurfaceObject_t surface, cudaTextureObject_t texture, int width) {
  const int x = threadIdx.x, y = blockIdx.x;
  const int old = surf2Dread<int>(surface, x * 4, y);
  surf2Dwrite(old * 3 + tex2D<int>(texture, (x + 1) % width, y) + 1, surface, x * 4, y);
}

cudaResourceDesc Of(CUarray array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = reinterpret_cast<cudaArray_t>(array);
  return resource;
}

cudaTextureObject_t Texture(const cudaResourceDesc& resource, cudaTextureAddressMode mode,
                            bool linear, bool normalized, bool fractions = false) {
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = description.addressMode[2] = mode;
  description.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  description.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  description.normalizedCoords = normalized;
  description.borderColor[0] = 0.25f;
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

// The bytes of the numbers that a kernel has left.
unsigned Result(const void* device, size_t bytes) {
  Bytes host(bytes);
  CUDA_CHECK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
  return SumOf(host.data(), bytes);
}

void Textures() {
  float* out;
  CUDA_CHECK(cudaMalloc(&out, 4096));
  const Bytes bytes = Pattern(16 * 8 * 4, 1);
  const Box plane = {Make(16, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4), 0, 0, 0, 64, 8, 1};
  FillFrom(plane, bytes.data());
  for (const auto mode :
       {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder}) {
    for (const bool linear : {false, true}) {
      const cudaTextureObject_t texture = Texture(Of(plane.array), mode, linear, true, true);
      Sample<<<1, 64>>>(texture, out, 16, 8);
      printf("mode %d, linear %d: %u\n", mode, linear, Result(out, 16 * 8 * 4));
      CUDA_CHECK(cudaDestroyTextureObject(texture));
    }
  }
  std::vector<float> numbers(6 * 5 * 4);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) * 0.75f;
  const Box volume = {Make(6, 5, 4, CU_AD_FORMAT_FLOAT, 1), 0, 0, 0, 24, 5, 4};
  FillFrom(volume, numbers.data());
  const cudaTextureObject_t deep = Texture(Of(volume.array), cudaAddressModeClamp, true, false);
  SampleVolume<<<1, 32>>>(deep, out);
  printf("volume: %u\n", Result(out, 128));
  const Box layers = {
      Make(4, 3, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED), 0, 0, 0, 16, 3, 5};
  const Box cube = {Make(2, 2, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP), 0, 0, 0, 8, 2, 6};
  FillFrom(layers, numbers.data());
  FillFrom(cube, numbers.data());
  const cudaTextureObject_t layered = Texture(Of(layers.array), cudaAddressModeClamp, false, false);
  const cudaTextureObject_t six = Texture(Of(cube.array), cudaAddressModeClamp, false, true);
  SampleLayers<<<1, 32>>>(layered, six, out);
  // The textures have their arrays as long as the kernel runs.
  CUDA_CHECK(cudaDeviceSynchronize());
  for (const CUarray array : {plane.array, volume.array, layers.array, cube.array})
    CHECK(cuArrayDestroy(array));
  printf("layers: %u\n", Result(out, 128));
  SampleVolume<<<1, 32>>>(deep, out);
  printf("volume, after its array: %u\n", Result(out, 128));
  for (const cudaTextureObject_t texture : {deep, layered, six})
    CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFree(out));
}

void LinearMemory() {
  short* line;
  float *rows, *out;
  CUDA_CHECK(cudaMalloc(&line, 4096));
  CUDA_CHECK(cudaMalloc(&rows, 64 << 10));
  CUDA_CHECK(cudaMalloc(&out, 4096));
  const Bytes bytes = Pattern(64 << 10, 9);
  CUDA_CHECK(cudaMemcpy(line, bytes.data(), 4096, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {line, cudaCreateChannelDesc<short2>(), 64 * 4};
  const cudaTextureObject_t texture = Texture(resource, cudaAddressModeClamp, false, false);
  for (int round = 0; round < 4; ++round) {
    FetchLine<<<1, 32>>>(texture, round, reinterpret_cast<int*>(out));
    printf("line %d: %u\n", round, Result(out, 128));
    CUDA_CHECK(cudaMemset(line, round, 100));
  }
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  std::vector<float> numbers(512 / 4 * 40);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97);
  CUDA_CHECK(cudaMemcpy(rows, numbers.data(), numbers.size() * 4, cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {rows, cudaCreateChannelDesc<float>(), 100, 40, 512};
  const cudaTextureObject_t flat = Texture(resource, cudaAddressModeClamp, true, false);
  FetchRows<<<1, 64>>>(flat, out);
  printf("rows with a pitch: %u\n", Result(out, 256));
  CUDA_CHECK(cudaDestroyTextureObject(flat));
  CUDA_CHECK(cudaFree(line));
  CUDA_CHECK(cudaFree(rows));
  CUDA_CHECK(cudaFree(out));
}

// Iterations that are alike: surfaces, textures and copies of arrays in each.
void Rounds() {
  constexpr int kWidth = 32, kHeight = 8, kBytes = kWidth * kHeight * 4;
  const unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
  const Box state = {Make(kWidth, kHeight, 0, CU_AD_FORMAT_SIGNED_INT32, 1, flags),
                     0,
                     0,
                     0,
                     kWidth * 4,
                     kHeight,
                     1};
  const Box before = {
      Make(kWidth, kHeight, 0, CU_AD_FORMAT_SIGNED_INT32, 1), 0, 0, 0, kWidth * 4, kHeight, 1};
  FillFrom(state, Pattern(kBytes, 2).data());
  const cudaTextureObject_t texture = Texture(Of(before.array), cudaAddressModeClamp, false, false);
  cudaSurfaceObject_t surface = 0;
  const cudaResourceDesc resource = Of(state.array);
  CUDA_CHECK(cudaCreateSurfaceObject(&surface, &resource));
  int* out;
  CUDA_CHECK(cudaMalloc(&out, kBytes));
  for (int round = 0; round < 12; ++round) {
    CUDA_CHECK(cudaMemcpy2DArrayToArray(reinterpret_cast<cudaArray_t>(before.array), 0, 0,
                                        reinterpret_cast<cudaArray_t>(state.array), 0, 0,
                                        kWidth * 4, kHeight));
    for (int step = 0; step < 3; ++step) Grow<<<kHeight, kWidth>>>(surface, texture, kWidth);
    CUDA_CHECK(cudaMemcpy2DFromArrayAsync(out, kWidth * 4,
                                          reinterpret_cast<cudaArray_t>(state.array), 0, 0,
                                          kWidth * 4, kHeight, cudaMemcpyDeviceToDevice, nullptr));
    printf("round %d: %u\n", round, Result(out, kBytes));
  }
  CUDA_CHECK(cudaDestroySurfaceObject(surface));
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFree(out));
  CHECK(cuArrayDestroy(state.array));
  CHECK(cuArrayDestroy(before.array));
}

void Levels() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {20, 12, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray mipmap;
  CHECK(cuMipmappedArrayCreate(&mipmap, &descriptor, 20));
  CUarray level, again;
  float* out;
  CUDA_CHECK(cudaMalloc(&out, 4096));
  unsigned count = 0;
  while (cuMipmappedArrayGetLevel(&level, mipmap, count) == CUDA_SUCCESS) {
    CUDA_ARRAY3D_DESCRIPTOR seen;
    CHECK(cuArray3DGetDescriptor(&seen, level));
    CHECK(cuMipmappedArrayGetLevel(&again, mipmap, count));
    printf("level %u: %zu x %zu x %zu, the same %d, destroyed %d\n", count, seen.Width, seen.Height,
           seen.Depth, again == level, cuArrayDestroy(level));
    const Bytes bytes = Pattern(seen.Width * seen.Height * 4, 64);
    FillFrom({level, 0, 0, 0, seen.Width * 4, seen.Height, 1}, bytes.data());
    const cudaTextureObject_t texture = Texture(Of(level), cudaAddressModeClamp, false, false);
    FetchRows<<<1, 16>>>(texture, out);
    printf("level %u reads %u\n", count++, Result(out, 64));
    CUDA_CHECK(cudaDestroyTextureObject(texture));
  }
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(mipmap);
  const cudaTextureObject_t texture = Texture(resource, cudaAddressModeClamp, false, false);
  FetchRows<<<1, 16>>>(texture, out);
  printf("%u levels, the first reads %u\n", count, Result(out, 64));
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CHECK(cuMipmappedArrayDestroy(mipmap));
  printf("destroyed twice: %d, its level: %d\n", cuMipmappedArrayDestroy(mipmap),
         cuArray3DGetDescriptor(nullptr, level));
  CUDA_CHECK(cudaFree(out));
}

CUresult TextureOf(const CUDA_RESOURCE_DESC& resource) {
  const CUDA_TEXTURE_DESC description = {};
  CUtexObject texture = 0;
  const CUresult result = cuTexObjectCreate(&texture, &resource, &description, nullptr);
  if (result == CUDA_SUCCESS) CHECK(cuTexObjectDestroy(texture));
  return result;
}

CUDA_RESOURCE_DESC LineOf(CUdeviceptr at, CUarray_format format, unsigned channels, size_t bytes) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = at;
  resource.res.linear.format = format;
  resource.res.linear.numChannels = channels;
  resource.res.linear.sizeInBytes = bytes;
  return resource;
}

CUDA_RESOURCE_DESC RowsOf(CUdeviceptr at, size_t width, size_t height, size_t pitch) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = at;
  resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  resource.res.pitch2D.numChannels = 1;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  return resource;
}

void RefusedTextures() {
  const CUarray_format f = CU_AD_FORMAT_FLOAT;
  CUdeviceptr device;
  CHECK(cuMemAlloc(&device, 4096));
  static float host[64];
  printf("lines: %d %d %d %d %d\n", TextureOf(LineOf(device, f, 1, 4096)),
         TextureOf(LineOf(device, f, 1, 4100)), TextureOf(LineOf(device, f, 3, 96)),
         TextureOf(LineOf(device, f, 1, 0)), TextureOf(LineOf(0, f, 1, 64)));
  printf("of the host: %d\n",
         TextureOf(LineOf(reinterpret_cast<CUdeviceptr>(host), f, 1, sizeof host)));
  printf("rows: %d %d %d %d %d\n", TextureOf(RowsOf(device, 64, 16, 256)),
         TextureOf(RowsOf(device, 64, 17, 256)), TextureOf(RowsOf(device, 64, 4, 128)),
         TextureOf(RowsOf(device, 64, ~size_t{0}, 512)), TextureOf(RowsOf(device, 0, 4, 512)));
  printf("rows that wrap: %d\n", TextureOf(RowsOf(device, 1, 65537, size_t{1} << 48)));
  CUDA_RESOURCE_DESC resource = {};
  printf("no array: %d\n", TextureOf(resource));
  resource.resType = static_cast<CUresourcetype>(77);
  printf("no kind: %d\n", TextureOf(resource));
  CUarray plain = Make(4, 4, 0, f, 1);
  resource = {};
  resource.res.array.hArray = plain;
  CUsurfObject surface = 0;
  const CUresult not_for_surfaces = cuSurfObjectCreate(&surface, &resource);
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  printf("surfaces: %d %d %d %d\n", not_for_surfaces, cuSurfObjectCreate(&surface, &resource),
         cuSurfObjectDestroy(12345), cuTexObjectDestroy(12345));
  CUDA_TEXTURE_DESC description;
  printf("described: %d %d\n", cuTexObjectGetTextureDesc(&description, 12345),
         cuSurfObjectGetResourceDesc(&resource, 12345));
  CHECK(cuArrayDestroy(plain));
  CHECK(cuMemFree(device));
}

// A texel of the same size, read as something else; one layer of several.
void Views() {
  const Box box = {
      Make(8, 1, 3, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED), 0, 0, 0, 32, 1, 3};
  FillFrom(box, Pattern(96, 50).data());
  CUDA_RESOURCE_DESC resource = {};
  resource.res.array.hArray = box.array;
  const CUDA_TEXTURE_DESC description = {};
  CUDA_RESOURCE_VIEW_DESC view = {};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  view.width = 8;
  view.height = 1;
  view.firstLayer = 1;
  view.lastLayer = 2;
  const auto create = [&](CUtexObject* texture) {
    return cuTexObjectCreate(texture, &resource, &description, &view);
  };
  CUtexObject texture = 0, refused = 0;
  CHECK(create(&texture));
  CUDA_RESOURCE_VIEW_DESC seen;
  CHECK(cuTexObjectGetResourceViewDesc(&seen, texture));
  float* out;
  CUDA_CHECK(cudaMalloc(&out, 4096));
  ReadLayers<<<1, 24>>>(texture, out);
  printf("view %d of %u to %u: %u\n", seen.format, seen.firstLayer, seen.lastLayer,
         Result(out, 96));
  view.lastLayer = 3;
  const CUresult beyond = create(&refused);
  view.lastLayer = 1;
  view.format = CU_RES_VIEW_FORMAT_FLOAT_2X32;
  const CUresult too_wide = create(&refused);
  view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
  printf("views: %d %d %d\n", beyond, too_wide, create(&refused));
  CHECK(cuTexObjectDestroy(texture));
  CHECK(cuArrayDestroy(box.array));
  CUDA_CHECK(cudaFree(out));
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  Textures();
  LinearMemory();
  Rounds();
  Levels();
  RefusedTextures();
  Views();
  return 0;
}

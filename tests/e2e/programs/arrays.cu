// Arrays: copies of every kind between arrays and other memory, also in graphs; what is refused;
// what ends with a context.
#include "boxes.h"

namespace {

// There and back through memory of each kind, whole and a part.
void Boxes() {
  const Box whole = {Make(50, 20, 9, CU_AD_FORMAT_UNSIGNED_INT16, 2), 0, 0, 0, 200, 20, 9};
  const Box part = {whole.array, 8, 3, 2, 100, 7, 4};
  const size_t bytes = 200 * 20 * 9;
  Bytes host = Pattern(bytes, 3);
  void* pinned;
  CUdeviceptr device;
  CUstream stream;
  CHECK(cuMemHostAlloc(&pinned, bytes, 0));
  CHECK(cuMemAlloc(&device, bytes));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_MEMCPY3D copy = Into(whole, CU_MEMORYTYPE_HOST, host.data(), 200, 20);
  CHECK(cuMemcpy3D(&copy));
  Bytes back(bytes);
  copy = OutOf(whole, CU_MEMORYTYPE_HOST, back.data(), 200, 20);
  CHECK(cuMemcpy3D(&copy));
  printf("host to array to host: %d\n", back == host);
  void* const from_device = reinterpret_cast<void*>(device);
  copy = OutOf(part, CU_MEMORYTYPE_DEVICE, from_device, 128, 8);
  CHECK(cuMemsetD8(device, 5, bytes));
  CHECK(cuMemcpy3DAsync(&copy, nullptr));
  CHECK(cuMemcpyDtoH(back.data(), device, bytes));
  printf("part to device: %u\n", SumOf(back.data(), bytes));
  for (int i = 0; i < 128 * 8 * 4; ++i) static_cast<char*>(pinned)[i] = static_cast<char>(i * 3);
  copy = Into(part, CU_MEMORYTYPE_HOST, pinned, 128, 8);
  CHECK(cuMemcpy3DAsync(&copy, stream));
  copy = OutOf(whole, CU_MEMORYTYPE_UNIFIED, pinned, 0, 0);
  CHECK(cuMemcpy3DAsync(&copy, stream));
  CHECK(cuStreamSynchronize(stream));
  printf("pinned to part, all to pinned: %u\n", SumOf(pinned, bytes));
  copy = OutOf(part, CU_MEMORYTYPE_HOST, back.data(), 101, 9);
  std::fill(back.begin(), back.end(), static_cast<unsigned char>(1));
  CHECK(cuMemcpy3DAsync(&copy, stream));
  printf("part to rows of 101 bytes: %u\n", SumOf(back.data(), bytes));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(device));
  CHECK(cuMemFreeHost(pinned));
  CHECK(cuArrayDestroy(whole.array));
}

// More bytes than one message or chunk has: rows beyond a chunk, and many slices in one.
void Large() {
  const struct {
    size_t width, height, depth;
    unsigned channels;
  } shapes[] = {{131072, 2, 0, 4}, {1500, 300, 0, 4}, {5, 3, 700, 1}, {70000, 0, 0, 1}};
  for (const auto& shape : shapes) {
    const size_t row = shape.width * shape.channels * 4;
    const size_t rows = shape.height == 0 ? 1 : shape.height;
    const size_t slices = shape.depth == 0 ? 1 : shape.depth;
    const Box box = {
        Make(shape.width, shape.height, shape.depth, CU_AD_FORMAT_FLOAT, shape.channels),
        0,
        0,
        0,
        row,
        rows,
        slices};
    const Bytes host = Pattern(row * rows * slices, shape.channels);
    Bytes back(host.size());
    CUDA_MEMCPY3D copy = Into(box, CU_MEMORYTYPE_HOST, host.data(), row, rows);
    CHECK(cuMemcpy3D(&copy));
    copy = OutOf(box, CU_MEMORYTYPE_HOST, back.data(), row, rows);
    CHECK(cuMemcpy3D(&copy));
    printf("large %zu x %zu x %zu: %d\n", shape.width, rows, slices, back == host);
    CHECK(cuArrayDestroy(box.array));
  }
}

// The calls that name both ends.
void Rows() {
  CUarray array = Make(64, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1);
  CUarray other = Make(64, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1);
  CUdeviceptr device;
  CUstream stream;
  CHECK(cuMemAlloc(&device, 256));
  CHECK(cuStreamCreate(&stream, 0));
  Bytes host = Pattern(256, 11), back(256);
  CHECK(cuMemcpyHtoA(array, 0, host.data(), 256));
  CHECK(cuMemcpyAtoA(other, 64, array, 128, 100));
  CHECK(cuMemcpyAtoA(other, 0, array, 0, 64));
  CHECK(cuMemcpyAtoD(device, other, 0, 164));
  CHECK(cuMemcpyDtoA(array, 32, device + 4, 160));
  CHECK(cuMemcpyAtoH(back.data(), array, 0, 256));
  printf("rows: %u\n", SumOf(back.data(), 256));
  CHECK(cuMemcpyHtoAAsync(other, 128, host.data(), 128, stream));
  host.assign(256, 0);
  CHECK(cuMemcpyAtoHAsync(back.data(), other, 100, 156, stream));
  printf("rows in a stream: %u\n", SumOf(back.data(), 256));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(device));
  CHECK(cuArrayDestroy(other));
  CHECK(cuArrayDestroy(array));
}

void Graphs() {
  const Box box = {Make(16, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4), 0, 0, 0, 64, 4, 1};
  Bytes host = Pattern(256, 21), back(256);
  CUdeviceptr device;
  CUstream stream;
  CHECK(cuMemAlloc(&device, 256));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUDA_MEMCPY3D copy = Into(box, CU_MEMORYTYPE_HOST, host.data(), 64, 4);
  CHECK(cuMemcpy3DAsync(&copy, stream));
  copy = OutOf(box, CU_MEMORYTYPE_DEVICE, reinterpret_cast<void*>(device), 64, 4);
  CHECK(cuMemcpy3DAsync(&copy, stream));
  CHECK(cuMemsetD8Async(device, 1, 10, stream));
  copy = Into({box.array, 0, 2, 0, 64, 2, 1}, CU_MEMORYTYPE_DEVICE, reinterpret_cast<void*>(device),
              64, 2);
  CHECK(cuMemcpy3DAsync(&copy, stream));
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    host.assign(256, static_cast<unsigned char>(round + 40));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    copy = OutOf(box, CU_MEMORYTYPE_HOST, back.data(), 64, 4);
    CHECK(cuMemcpy3D(&copy));
    printf("graph %d: %u\n", round, SumOf(back.data(), 256));
  }
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(device));
  CHECK(cuArrayDestroy(box.array));
}

CUresult Created(size_t width, size_t height, size_t depth, CUarray_format format,
                 unsigned channels, unsigned flags) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {width, height, depth, format, channels, flags};
  CUarray array = nullptr;
  const CUresult result = cuArray3DCreate(&array, &descriptor);
  if (result == CUDA_SUCCESS) CHECK(cuArrayDestroy(array));
  return result;
}

void RefusedArrays() {
  const CUarray_format f = CU_AD_FORMAT_FLOAT;
  printf("sizes: %d %d %d %d\n", Created(0, 4, 0, f, 1, 0), Created(1 << 20, 1, 0, f, 1, 0),
         Created(4, 4, 1 << 15, f, 1, 0), Created(4, 0, 4, f, 1, 0));
  printf("kinds: %d %d %d %d %d\n", Created(4, 4, 0, f, 3, 0), Created(4, 4, 0, f, 0, 0),
         Created(4, 4, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0), Created(4, 4, 0, f, 1, 1u << 20),
         Created(4, 4, 0, static_cast<CUarray_format>(0x7777), 1, 0));
  printf("layers: %d %d %d %d\n", Created(4, 4, 0, f, 1, CUDA_ARRAY3D_LAYERED),
         Created(4, 5, 6, f, 1, CUDA_ARRAY3D_CUBEMAP), Created(4, 4, 7, f, 1, CUDA_ARRAY3D_CUBEMAP),
         Created(4, 4, 12, f, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
  CUarray array = Make(10, 6, 0, f, 1);
  CUDA_ARRAY_DESCRIPTOR flat;
  CHECK(cuArrayGetDescriptor(&flat, array));
  printf("flat: %zu x %zu, %u of %d; null %d, plane %d\n", flat.Width, flat.Height,
         flat.NumChannels, flat.Format, cuArrayGetDescriptor(nullptr, array),
         cuArrayGetPlane(&array, array, 0));
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
  printf("requirements: %d\n", cuArrayGetMemoryRequirements(&needs, array, 0));
  CHECK(cuArrayDestroy(array));
  printf("destroyed twice %d, null %d, foreign %d, described %d\n", cuArrayDestroy(array),
         cuArrayDestroy(nullptr), cuArrayDestroy(reinterpret_cast<CUarray>(0x123456789abcull)),
         cuArrayGetDescriptor(&flat, array));
}

void RefusedCopies() {
  CUarray array = Make(10, 6, 3, CU_AD_FORMAT_FLOAT, 2);
  CUdeviceptr device;
  CHECK(cuMemAlloc(&device, 1024));
  static char host[1 << 16];
  const auto into = [&](Box box, CUmemorytype type, const void* memory, size_t pitch) {
    box.array = box.array == nullptr ? array : box.array;
    const CUDA_MEMCPY3D copy = Into(box, type, memory, pitch, box.height);
    return cuMemcpy3D(&copy);
  };
  const CUmemorytype h = CU_MEMORYTYPE_HOST, d = CU_MEMORYTYPE_DEVICE;
  printf("beyond: %d %d %d %d\n", into({nullptr, 8, 0, 0, 80, 1, 1}, h, host, 80),
         into({nullptr, 0, 4, 0, 8, 3, 1}, h, host, 8),
         into({nullptr, 0, 0, 3, 8, 1, 1}, h, host, 8),
         into({nullptr, ~size_t{7}, 0, 0, 16, 1, 1}, h, host, 16));
  printf("inside an element: %d\n", into({nullptr, 4, 0, 0, 8, 1, 1}, h, host, 8));
  printf("nothing: %d %d\n", into({nullptr, 0, 0, 0, 0, 1, 1}, h, host, 0),
         into({nullptr, 0, 0, 0, 8, 1, 0}, h, host, 8));
  const void* const small = reinterpret_cast<const void*>(device + 512);
  printf("memory: %d %d %d\n", into({nullptr, 0, 0, 0, 80, 6, 3}, d, small, 80),
         into({nullptr, 0, 0, 0, 8, 1, 1}, d, host, 8),
         into({nullptr, 0, 0, 0, 80, 1, 1}, d, small, 80));
  CUarray gone = Make(4, 4, 0, CU_AD_FORMAT_FLOAT, 1);
  CHECK(cuArrayDestroy(gone));
  printf("no array: %d %d %d\n", into({gone, 0, 0, 0, 4, 1, 1}, h, host, 4),
         cuMemcpyAtoH(host, gone, 0, 4), cuMemcpyAtoA(array, 0, gone, 0, 4));
  printf("row: %d %d\n", cuMemcpyHtoA(array, 0, host, 81), cuMemcpyAtoD(device, array, 72, 16));
  CHECK(cuMemFree(device));
  CHECK(cuArrayDestroy(array));
}

// All of it ends with its context.
void Reset() {
  CUarray array = Make(100, 100, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SURFACE_LDST);
  CUDA_RESOURCE_DESC resource = {};
  resource.res.array.hArray = array;
  CUsurfObject surface;
  CHECK(cuSurfObjectCreate(&surface, &resource));
  CUDA_CHECK(cudaDeviceReset());
  CUDA_CHECK(cudaFree(nullptr));
  Rows();
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  Boxes();
  Large();
  Rows();
  Graphs();
  RefusedArrays();
  RefusedCopies();
  Reset();
  return 0;
}

// Virtual memory management by the program: the program lets a range grow, moves memory to another
// address, where it keeps its bytes, and makes calls that the driver refuses.
#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kStep = 2 << 20;

__global__ void Add(int* values, size_t count, int more) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    values[i] += more;
}

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return properties;
}

CUmemGenericAllocationHandle Create(size_t bytes) {
  const CUmemAllocationProp properties = OnDevice();
  CUmemGenericAllocationHandle handle;
  CHECK(cuMemCreate(&handle, bytes, &properties, 0));
  return handle;
}

CUresult Access(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, flags};
  return cuMemSetAccess(address, bytes, &access, 1);
}
CUresult Open(CUdeviceptr address, size_t bytes) {
  return Access(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

long long SumOf(CUdeviceptr address, size_t bytes) {
  std::vector<int> values(bytes / sizeof(int));
  CHECK(cuMemcpyDtoH(values.data(), address, bytes));
  long long sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

void AddTo(CUdeviceptr address, size_t bytes, int more) {
  Add<<<64, 256>>>(reinterpret_cast<int*>(address), bytes / sizeof(int), more);
}

// As caching allocators do: one range of addresses, memory behind it as it is needed.
void Grow() {
  constexpr int kParts = 6;
  CUdeviceptr base;
  CHECK(cuMemAddressReserve(&base, 64 * kStep, 0, 0, 0));
  std::vector<CUmemGenericAllocationHandle> parts;
  for (int i = 0; i < kParts; ++i) {
    parts.push_back(Create(kStep));
    CHECK(cuMemMap(base + i * kStep, kStep, 0, parts.back(), 0));
    CHECK(Open(base + i * kStep, kStep));
    CHECK(cuMemsetD32(base + i * kStep, i, kStep / 4));
    AddTo(base, (i + 1) * kStep, 1);
    printf("%d parts: %lld\n", i + 1, SumOf(base, (i + 1) * kStep));
  }
  // The last parts go while their work may run, and others come to the same addresses.
  for (int round = 0; round < 3; ++round) {
    for (int i = 3; i < kParts; ++i) {
      AddTo(base + i * kStep, kStep, 1);
      CUDA_CHECK(cudaDeviceSynchronize());
      CHECK(cuMemUnmap(base + i * kStep, kStep));
      CHECK(cuMemRelease(parts[i]));
    }
    for (int i = 3; i < kParts; ++i) {
      parts[i] = Create(kStep);
      CHECK(cuMemMap(base + i * kStep, kStep, 0, parts[i], 0));
    }
    CHECK(Open(base + 3 * kStep, (kParts - 3) * kStep));
    CHECK(cuMemsetD32(base + 3 * kStep, round, (kParts - 3) * kStep / 4));
    AddTo(base, kParts * kStep, 2);
    printf("round %d: %lld\n", round, SumOf(base, kParts * kStep));
  }
  CHECK(cuMemUnmap(base, kParts * kStep));
  for (const CUmemGenericAllocationHandle part : parts) CHECK(cuMemRelease(part));
  CHECK(cuMemAddressFree(base, 64 * kStep));
}

// Two memories change places, one is kept by its mapping alone, one lives on without any address.
void Move() {
  CUdeviceptr range, other;
  CHECK(cuMemAddressReserve(&range, 2 * 3 * kStep, 8 * kStep, 0, 0));
  CHECK(cuMemAddressReserve(&other, 3 * kStep, 0, 0, 0));
  printf("aligned: %d\n", range % (8 * kStep) == 0);
  CUmemGenericAllocationHandle one = Create(3 * kStep), two = Create(3 * kStep);
  CHECK(cuMemMap(range, 3 * kStep, 0, one, 0));
  CHECK(cuMemMap(range + 3 * kStep, 3 * kStep, 0, two, 0));
  CHECK(Open(range, 6 * kStep));
  CHECK(cuMemsetD32(range, 1, 3 * kStep / 4));
  CHECK(cuMemsetD32(range + 3 * kStep, 2, 3 * kStep / 4));
  for (int round = 0; round < 3; ++round) {
    AddTo(range, 6 * kStep, 10);
    CUDA_CHECK(cudaDeviceSynchronize());
    CHECK(cuMemUnmap(range, 6 * kStep));
    CHECK(cuMemMap(range + (round % 2 == 0 ? 3 * kStep : 0), 3 * kStep, 0, one, 0));
    CHECK(cuMemMap(range + (round % 2 == 0 ? 0 : 3 * kStep), 3 * kStep, 0, two, 0));
    CHECK(Open(range, 6 * kStep));
    printf("places %d: %lld %lld\n", round, SumOf(range, 3 * kStep),
           SumOf(range + 3 * kStep, 3 * kStep));
  }
  CUmemGenericAllocationHandle again;
  CHECK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 5)));
  printf("retained: %d\n", again == two);
  CHECK(cuMemUnmap(range, 6 * kStep));
  CHECK(cuMemAddressFree(range, 6 * kStep));
  CHECK(cuMemRelease(two));  // the retained handle is left
  CHECK(cuMemMap(other, 3 * kStep, 0, two, 0));
  CHECK(cuMemRelease(again));  // the mapping is left
  CHECK(Open(other, 3 * kStep));
  printf("kept by its mapping: %lld\n", SumOf(other, 3 * kStep));
  CHECK(cuMemUnmap(other, 3 * kStep));
  CHECK(cuMemMap(other, 3 * kStep, 0, one, 0));
  CHECK(Open(other, 3 * kStep));
  printf("lived on: %lld\n", SumOf(other, 3 * kStep));
  printf("gone: %d\n", cuMemRelease(two));
  CHECK(cuMemUnmap(other, 3 * kStep));
  CHECK(cuMemRelease(one));
  CHECK(cuMemAddressFree(other, 3 * kStep));
}

void Questions() {
  CUdeviceptr base, start = 0;
  size_t bytes = 0, granularity = 0;
  unsigned long long access = 7;
  unsigned type = 0;
  int supported = 0;
  const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemAllocationProp properties = OnDevice();
  CHECK(
      cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  CHECK(cuMemGetAllocationGranularity(&granularity, &properties,
                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  printf("supported %d, granularity %zu\n", supported, granularity);
  CHECK(cuMemAddressReserve(&base, 4 * kStep, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = Create(kStep);
  CHECK(cuMemMap(base + kStep, kStep, 0, handle, 0));
  CHECK(cuMemGetAccess(&access, &location, base + kStep));
  printf("access before: %llu\n", access);
  CHECK(Open(base + kStep, kStep));
  CHECK(cuMemGetAccess(&access, &location, base + kStep + 77));
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + kStep));
  printf("access after: %llu, type %u\n", access, type);
  CHECK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, base + kStep + 9));
  CHECK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, base + kStep + 9));
  printf("range: %d %zu\n", start == base, bytes);
  CHECK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, base + kStep + 9));
  CHECK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, base + kStep + 9));
  printf("mapping: %d %zu\n", start == base + kStep, bytes);
  CHECK(cuMemGetAddressRange(&start, &bytes, base + kStep + 9));
  printf("address range: %d %zu\n", start == base + kStep, bytes);
  properties = {};
  CHECK(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
  printf("properties: %d %d %d\n", properties.type, properties.location.type,
         properties.location.id);
  CHECK(Access(base + kStep, kStep, CU_MEM_ACCESS_FLAGS_PROT_NONE));
  CHECK(cuMemGetAccess(&access, &location, base + kStep));
  printf("access closed: %llu\n", access);
  CHECK(cuMemUnmap(base + kStep, kStep));
  CHECK(cuMemRelease(handle));
  CHECK(cuMemAddressFree(base, 4 * kStep));
}

void Refused() {
  CUdeviceptr base;
  const CUmemAllocationProp good = OnDevice();
  CUmemAllocationProp bad = OnDevice();
  CUmemGenericAllocationHandle handle = 0;
  printf("reserve: %d %d %d %d\n", cuMemAddressReserve(&base, kStep + 1, 0, 0, 0),
         cuMemAddressReserve(&base, 0, 0, 0, 0), cuMemAddressReserve(&base, kStep, 3, 0, 0),
         cuMemAddressReserve(&base, kStep, 0, 0, 1));
  bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  printf("create: %d %d %d %d", cuMemCreate(&handle, kStep, &bad, 0),
         cuMemCreate(&handle, kStep - 1, &good, 0), cuMemCreate(&handle, 0, &good, 0),
         cuMemCreate(&handle, kStep, &good, 1));
  bad = OnDevice();
  bad.location.id = 99;
  printf(" %d %d\n", cuMemCreate(&handle, kStep, &bad, 0),
         cuMemCreate(&handle, size_t{1} << 45, &good, 0));
  CHECK(cuMemAddressReserve(&base, 4 * kStep, 0, 0, 0));
  handle = Create(2 * kStep);
  printf(
      "map: %d %d %d %d %d\n", cuMemMap(base + 1, 2 * kStep, 0, handle, 0),
      cuMemMap(base, 3 * kStep, 0, handle, 0), cuMemMap(base + 3 * kStep, 2 * kStep, 0, handle, 0),
      cuMemMap(base, 2 * kStep, kStep, handle, 0), cuMemMap(base, 2 * kStep, 0, handle + 12345, 0));
  CHECK(cuMemMap(base, 2 * kStep, 0, handle, 0));
  const CUmemGenericAllocationHandle second = Create(kStep);
  printf("over: %d\n", cuMemMap(base + kStep, kStep, 0, second, 0));
  printf("closed: %d\n", cuMemsetD8(base, 0, 1) != CUDA_SUCCESS);
  printf("access: %d %d %d\n", Open(base, kStep), Open(base, 4 * kStep), Open(base + kStep, kStep));
  CHECK(Open(base, 2 * kStep));
  CHECK(cuMemsetD8(base, 0, 2 * kStep));
  CHECK(cuCtxSynchronize());
  printf("free: %d %d\n", cuMemFree(base), cuMemAddressFree(base, 4 * kStep));
  printf("unmap: %d %d %d\n", cuMemUnmap(base, kStep), cuMemUnmap(base, 4 * kStep),
         cuMemUnmap(base + kStep, kStep));
  CHECK(cuMemUnmap(base, 2 * kStep));
  printf("unmapped: %d\n", cuMemUnmap(base, 2 * kStep));
  printf("release: %d %d\n", cuMemRelease(handle), cuMemRelease(handle));
  CHECK(cuMemRelease(second));
  printf("free: %d %d %d\n", cuMemAddressFree(base, 2 * kStep), cuMemAddressFree(base, 4 * kStep),
         cuMemAddressFree(base, 4 * kStep));
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  Grow();
  Move();
  Questions();
  Refused();
  size_t free_bytes = 0, total_bytes = 0;
  CHECK(cuMemGetInfo(&free_bytes, &total_bytes));
  printf("done\n");
  return 0;
}

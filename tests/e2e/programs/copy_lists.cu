// Copies that name more than one range: batches, and boxes between devices.
#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kBytes = 40000;
constexpr int kParts = 5;

long long SumOf(const std::vector<unsigned char>& bytes) {
  long long sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum += static_cast<long long>(bytes[i]) * (i % 101);
  return sum;
}

// From pageable, pinned and device memory to device memory and back, and changed right afterwards
// where the attribute allows that.
void Batches(CUstream stream) {
  std::vector<unsigned char> pageable(kBytes), back(kParts * kBytes);
  unsigned char* pinned;
  CUdeviceptr device;
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), kBytes));
  CHECK(cuMemAlloc(&device, kParts * kBytes));
  CHECK(cuMemsetD8(device, 0, kParts * kBytes));
  CUmemcpyAttributes attribute = {};
  attribute.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  size_t index = 0;
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < kBytes; ++i) {
      pageable[i] = static_cast<unsigned char>(i * 3 + round);
      pinned[i] = static_cast<unsigned char>(i * 5 + round);
    }
    std::vector<CUdeviceptr> to, from;
    std::vector<size_t> sizes;
    for (int part = 0; part < kParts; ++part) {
      to.push_back(device + part * kBytes);
      from.push_back(reinterpret_cast<CUdeviceptr>(part % 2 == 0 ? pinned : pageable.data()));
      sizes.push_back(kBytes - part * 1000 - round);
    }
    from[kParts - 1] = device;
    CHECK(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), kParts, &attribute, &index, 1,
                             stream));
    memset(pinned, 255, kBytes);
    memset(pageable.data(), 255, kBytes);
    CUdeviceptr host = reinterpret_cast<CUdeviceptr>(back.data());
    size_t all = kParts * kBytes;
    CHECK(cuMemcpyBatchAsync(&host, &device, &all, 1, nullptr, nullptr, 0, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("batch %d: %lld\n", round, SumOf(back));
  }
  CUdeviceptr wrong[2] = {device, 0x10};
  size_t few[2] = {64, 64};
  printf("refused: %d %d %d\n",
         cuMemcpyBatchAsync(nullptr, wrong, few, 1, nullptr, nullptr, 0, stream),
         cuMemcpyBatchAsync(wrong, wrong, few, 0, nullptr, nullptr, 0, stream),
         cuMemcpyBatchAsync(wrong, wrong, nullptr, 1, nullptr, nullptr, 0, stream));
  CHECK(cuMemFree(device));
  CHECK(cuMemFreeHost(pinned));
}

void Boxes(CUstream stream) {
  CUcontext context;
  CUdeviceptr from, to;
  std::vector<unsigned char> bytes(kBytes), back(kBytes);
  CHECK(cuCtxGetCurrent(&context));
  CHECK(cuMemAlloc(&from, kBytes));
  CHECK(cuMemAlloc(&to, kBytes));
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  CHECK(cuMemcpyHtoD(from, bytes.data(), kBytes));
  CHECK(cuMemsetD8(to, 0, kBytes));
  CUDA_MEMCPY3D_PEER copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcContext = copy.dstContext = context;
  copy.srcPitch = 100, copy.srcHeight = 20;
  copy.dstPitch = 200, copy.dstHeight = 10;
  copy.srcXInBytes = 3, copy.srcY = 2, copy.srcZ = 1;
  copy.dstXInBytes = 7, copy.dstY = 1, copy.dstZ = 2;
  copy.WidthInBytes = 60, copy.Height = 8, copy.Depth = 5;
  CHECK(cuMemcpy3DPeer(&copy));
  CHECK(cuMemcpyDtoH(back.data(), to, kBytes));
  printf("box: %lld\n", SumOf(back));
  copy.dstXInBytes = 90;
  CHECK(cuMemcpy3DPeerAsync(&copy, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(back.data(), to, kBytes));
  printf("box: %lld\n", SumOf(back));
  printf("refused: %d\n", cuMemcpy3DPeer(nullptr));
  CHECK(cuMemFree(from));
  CHECK(cuMemFree(to));
}

}  // namespace

int main() {
  CUstream stream;
  CUDA_CHECK(cudaFree(nullptr));
  CHECK(cuStreamCreate(&stream, 0));
  Batches(stream);
  Boxes(stream);
  CHECK(cuStreamDestroy(stream));
  return 0;
}

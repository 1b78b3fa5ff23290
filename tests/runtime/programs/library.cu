// Code that a program loads itself.
#include "check.h"

namespace {

const char kCode[] = R"(
.version 8.0
.target sm_80
.address_size 64
.global .u32 amount = 5;
.visible .entry add(.param .u64 target)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [target];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [%rd2];
  ld.global.u32 %r2, [amount];
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
)";

}  // namespace

int main() {
  cudaLibrary_t library;
  CHECK(cudaLibraryLoadData(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel;
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  EXPECT_ERROR(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "subtract"));
  unsigned count = 0;
  CHECK(cudaLibraryGetKernelCount(&count, library));
  EXPECT(count == 1);
  int* device;
  CHECK(cudaMalloc(&device, sizeof(int)));
  CHECK(cudaMemset(device, 0, sizeof(int)));
  void* args[] = {&device};
  CHECK(cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 0, nullptr));
  void* amount;
  size_t bytes = 0;
  CHECK(cudaLibraryGetGlobal(&amount, &bytes, library, "amount"));
  EXPECT(bytes == 4);
  const int seven = 7;
  CHECK(cudaMemcpy(amount, &seven, sizeof seven, cudaMemcpyHostToDevice));
  CHECK(cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 0, nullptr));
  int value = 0;
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 12);
  CHECK(cudaFree(device));
  CHECK(cudaLibraryUnload(library));
  std::puts("ok");
}

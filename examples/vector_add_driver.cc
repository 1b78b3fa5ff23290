// c = a + b with the driver interface alone: no runtime library, the kernel is PTX text.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static const char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry vector_add(.param .u64 param_a, .param .u64 param_b, .param .u64 param_c,
                           .param .u32 param_count)
{
  .reg .pred %outside;
  .reg .b32 %i, %block, %width, %thread, %count;
  .reg .f32 %x, %y;
  .reg .b64 %a, %b, %c, %offset;

  ld.param.u32 %count, [param_count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %i, %block, %width, %thread;
  setp.ge.s32 %outside, %i, %count;
  @%outside bra done;

  ld.param.u64 %a, [param_a];
  ld.param.u64 %b, [param_b];
  ld.param.u64 %c, [param_c];
  cvta.to.global.u64 %a, %a;
  cvta.to.global.u64 %b, %b;
  cvta.to.global.u64 %c, %c;
  mul.wide.s32 %offset, %i, 4;
  add.s64 %a, %a, %offset;
  add.s64 %b, %b, %offset;
  add.s64 %c, %c, %offset;
  ld.global.f32 %x, [%a];
  ld.global.f32 %y, [%b];
  add.f32 %x, %x, %y;
  st.global.f32 [%c], %x;
done:
  ret;
}
)";

static void Check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s (%d)\n", call, name ? name : "unknown error",
               static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) Check((call), #call)

int main() {
  constexpr int kCount = 1 << 20;
  constexpr size_t kBytes = kCount * sizeof(float);
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = 0.5f * static_cast<float>(i % 1000);
    b[i] = 0.25f * static_cast<float>(i % 777);
  }

  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&function, module, "vector_add"));

  CUdeviceptr device_a, device_b, device_c;
  CHECK(cuMemAlloc(&device_a, kBytes));
  CHECK(cuMemAlloc(&device_b, kBytes));
  CHECK(cuMemAlloc(&device_c, kBytes));
  CHECK(cuMemcpyHtoD(device_a, a.data(), kBytes));
  CHECK(cuMemcpyHtoD(device_b, b.data(), kBytes));

  int count = kCount;
  void* params[] = {&device_a, &device_b, &device_c, &count};
  CHECK(
      cuLaunchKernel(function, (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, params, nullptr));
  CHECK(cuMemcpyDtoH(c.data(), device_c, kBytes));

  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += c[i] != a[i] + b[i];
  std::printf("vector_add_driver: %d elements, %d wrong\n", kCount, wrong);

  CHECK(cuMemFree(device_a));
  CHECK(cuMemFree(device_b));
  CHECK(cuMemFree(device_c));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  return wrong == 0 ? 0 : 1;
}

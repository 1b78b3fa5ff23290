// Compiles kernels by NVRTC, for machine code and for PTX, loads each image as a module and as a
// library, and launches its kernels.
#include <nvrtc.h>

#include "check.h"

static const char kSource[] =
    "extern \"C\" __global__ void Scale(float* values, float factor) {\n"
    "  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;\n"
    "}\n"
    "template <int kStep> __global__ void Step(float* values) { values[threadIdx.x] += kStep; }\n";

static void CheckNvrtc(nvrtcResult result, int line) {
  if (result == NVRTC_SUCCESS) return;
  fprintf(stderr, "line %d: %s\n", line, nvrtcGetErrorString(result));
  exit(1);
}
#define NVRTC_CHECK(call) CheckNvrtc((call), __LINE__)

static void Run(const void* image, const char* step) {
  CUmodule module;
  CUlibrary library;
  CUkernel kernel;
  CUfunction scale, stepped;
  CUdeviceptr values;
  float host[64], factor = 2.5f;
  for (int i = 0; i < 64; ++i) host[i] = (float)i;
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuModuleGetFunction(&scale, module, "Scale"));
  CHECK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, step));
  CHECK(cuKernelGetFunction(&stepped, kernel));
  CHECK(cuMemAlloc(&values, sizeof(host)));
  CHECK(cuMemcpyHtoD(values, host, sizeof(host)));
  void* of_scale[] = {&values, &factor};
  void* of_step[] = {&values};
  CHECK(cuLaunchKernel(scale, 2, 1, 1, 32, 1, 1, 0, NULL, of_scale, NULL));
  CHECK(cuLaunchKernel(stepped, 1, 1, 1, 32, 1, 1, 0, NULL, of_step, NULL));
  CHECK(cuMemcpyDtoH(host, values, sizeof(host)));
  printf("%g %g %g\n", host[3], host[31], host[63]);
  CHECK(cuMemFree(values));
}

static void Compile(int count, const char* const* options) {
  nvrtcProgram program;
  size_t cubin_bytes = 0, ptx_bytes = 0;
  const char* step;
  NVRTC_CHECK(nvrtcCreateProgram(&program, kSource, "kernels.cu", 0, NULL, NULL));
  NVRTC_CHECK(nvrtcAddNameExpression(program, "Step<7>"));
  NVRTC_CHECK(nvrtcCompileProgram(program, count, options));
  NVRTC_CHECK(nvrtcGetLoweredName(program, "Step<7>", &step));
  NVRTC_CHECK(nvrtcGetPTXSize(program, &ptx_bytes));
  const int sized = nvrtcGetCUBINSize(program, &cubin_bytes) == NVRTC_SUCCESS && cubin_bytes > 0;
  printf("%s: PTX %s, machine code %s\n", count > 0 ? options[count - 1] : "no option",
         ptx_bytes > 1 ? "there" : "missing", sized ? "there" : "missing");
  char* image = malloc(sized ? cubin_bytes : ptx_bytes);
  if (sized) {
    NVRTC_CHECK(nvrtcGetCUBIN(program, image));
  } else {
    NVRTC_CHECK(nvrtcGetPTX(program, image));
  }
  Run(image, step);
  free(image);
  NVRTC_CHECK(nvrtcDestroyProgram(&program));
  printf("destroyed: %s\n", program == NULL ? "yes" : "no");
}

int main(void) {
  CUdevice device;
  CUcontext context;
  int major = 0, minor = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  NVRTC_CHECK(nvrtcVersion(&major, &minor));
  printf("NVRTC of CUDA %d\n", major);
  Compile(1, (const char*[]){"--gpu-architecture=sm_80"});
  Compile(3, (const char*[]){"--fmad=false", "-arch", "sm_80"});
  Compile(1, (const char*[]){"-arch=compute_80"});
  Compile(0, NULL);
  nvrtcProgram wrong;
  NVRTC_CHECK(nvrtcCreateProgram(&wrong, "no code", "wrong.cu", 0, NULL, NULL));
  printf("wrong: %d\n", (int)nvrtcCompileProgram(wrong, 1, (const char*[]){"-arch=sm_80"}));
  NVRTC_CHECK(nvrtcDestroyProgram(&wrong));
  return 0;
}

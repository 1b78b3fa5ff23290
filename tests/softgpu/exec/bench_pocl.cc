#define CL_TARGET_OPENCL_VERSION 120
#include "tests/softgpu/exec/bench_pocl.h"

#include <CL/cl.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace softgpu::testing {
namespace {

void Check(cl_int code, const std::string& what) {
  if (code != CL_SUCCESS) throw std::runtime_error("PoCL: " + what + ": " + std::to_string(code));
}

std::string Name(cl_platform_id platform) {
  char name[256] = "";
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
  return name;
}

// Its objects live as long as the process.
class OpenClPocl final : public Pocl {
 public:
  OpenClPocl(cl_device_id device, const std::string& source) : device_(device) {
    cl_int code = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    Check(code, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device, 0, &code);
    Check(code, "clCreateCommandQueue");
    const char* text = source.c_str();
    program_ = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
    Check(code, "clCreateProgramWithSource");
    // Fused multiply-adds, as nvcc uses them.
    Check(clBuildProgram(program_, 1, &device, "-cl-mad-enable", nullptr, nullptr),
          "clBuildProgram");
  }

  void Share(uint64_t address, size_t bytes) override {
    cl_int code = CL_SUCCESS;
    buffers_[address] = {clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                        reinterpret_cast<void*>(address), &code),
                         bytes};
    Check(code, "clCreateBuffer");
  }

  void Publish() override {
    for (const auto& [address, buffer] : buffers_) {
      cl_int code = CL_SUCCESS;
      void* at = clEnqueueMapBuffer(queue_, buffer.memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    buffer.bytes, 0, nullptr, nullptr, &code);
      Check(code, "clEnqueueMapBuffer");
      Check(clEnqueueUnmapMemObject(queue_, buffer.memory, at, 0, nullptr, nullptr),
            "clEnqueueUnmapMemObject");
    }
    Check(clFinish(queue_), "clFinish");
  }

  std::function<void()> Prepare(const std::string& name, Dim3 grid, Dim3 block,
                                const std::vector<Argument>& arguments) override {
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = clCreateKernel(program_, name.c_str(), &code);
    Check(code, name);
    cl_uint index = 0;
    for (const Argument& argument : arguments) {
      const bool is_memory = argument.address != 0;
      const void* value = is_memory
                              ? static_cast<const void*>(&buffers_.at(argument.address).memory)
                              : &argument.value;
      Check(clSetKernelArg(kernel, index++, is_memory ? sizeof(cl_mem) : 4, value), name);
    }
    return [this, name, kernel, grid, block] {
      const size_t local[] = {block.x, block.y};
      const size_t global[] = {size_t{grid.x} * block.x, size_t{grid.y} * block.y};
      Check(clEnqueueNDRangeKernel(queue_, kernel, 2, nullptr, global, local, 0, nullptr, nullptr),
            name);
      Check(clFinish(queue_), name);
    };
  }

 private:
  struct Buffer {
    cl_mem memory;
    size_t bytes;
  };
  cl_device_id device_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  std::map<uint64_t, Buffer> buffers_;  // by address
};

cl_device_id FindDevice() {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return nullptr;
  for (cl_uint n = 0; n < count && n < 16; ++n) {
    if (Name(platforms[n]) != "Portable Computing Language") continue;
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platforms[n], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS)
      return device;
  }
  return nullptr;
}

}  // namespace

Pocl::Argument::Argument(float v) { std::memcpy(&value, &v, sizeof value); }

std::unique_ptr<Pocl> Pocl::Open(const std::string& file, int threads, std::string* why) {
  setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(threads).c_str(), 1);
  const cl_device_id device = FindDevice();
  if (device == nullptr) {
    *why = "PoCL is not installed (scripts/setup --bench)";
    return nullptr;
  }
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return std::make_unique<OpenClPocl>(device, text.str());
}

}  // namespace softgpu::testing

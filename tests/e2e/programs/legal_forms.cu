// Legal forms that a device easily forgets. Several inputs of a link define one name (.common,
// .weak, without a directive). A register indexes a variable. Calls take arguments in registers. A
// kernel reads the rest of shared memory's granule. Nodes inside a child graph get new parameters.
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

// An entry that stores the variable of that name, as `definition` defines it.
std::string Reader(const std::string& entry, const std::string& variable,
                   const std::string& definition) {
  return kHeader + definition + "\n.visible .entry " + entry +
         "(.param .u64 out) {\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n"
         "ld.global.u32 %r1, [" +
         variable + "];\nst.global.u32 [%rd1], %r1;\nret; }\n";
}

// What the two entries read from the module that the inputs become.
void Link(const char* what, const std::vector<std::string>& inputs) {
  CUlinkState state;
  CHECK(cuLinkCreate(0, NULL, NULL, &state));
  for (const std::string& input : inputs) {
    CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(input.c_str()), input.size() + 1,
                        what, 0, NULL, NULL));
  }
  void* image;
  size_t bytes;
  CHECK(cuLinkComplete(state, &image, &bytes));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuLinkDestroy(state));
  CUdeviceptr out;
  CHECK(cuMemAlloc(&out, sizeof(unsigned)));
  printf("%s:", what);
  for (const char* entry : {"first", "second"}) {
    CUfunction function;
    unsigned value = 0;
    void* arguments[] = {&out};
    CHECK(cuModuleGetFunction(&function, module, entry));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuMemcpyDtoH(&value, out, sizeof value));
    printf(" %u", value);
  }
  printf("\n");
  CHECK(cuMemFree(out));
  CHECK(cuModuleUnload(module));
}

void Links() {
  Link("static", {Reader("first", "$str", ".global .align 4 .u32 $str = 1;"),
                  Reader("second", "$str", ".global .align 4 .u32 $str = 2;")});
  Link("common", {Reader("first", "env", ".common .global .align 4 .u32 env;"),
                  Reader("second", "env", ".common .global .align 4 .u32 env;")});
  Link("weak", {Reader("first", "env", ".weak .global .align 4 .u32 env = 7;"),
                Reader("second", "env", ".weak .global .align 4 .u32 env = 7;")});
}

// out[i] = table[i] + 7, by way of a local array.
void Indexed() {
  const std::string text =
      std::string(kHeader) +
      ".global .align 4 .b32 table[4] = {10, 20, 30, 40};\n"
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
      ".local .align 4 .b32 kept[4];\nmov.u32 %r0, %tid.x;\n"
      "mov.u32 %r2, 7;\nst.local.b32 kept[%r0], %r2;\nld.global.b32 %r2, table[%r0];\n"
      "ld.local.b32 %r3, kept[%r0+0];\nadd.u32 %r2, %r2, %r3;\nld.param.u64 %rd0, [out];\n"
      "mul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd0, %rd0, %rd1;\nst.global.u32 [%rd0], %r2;\nret; }\n";
  CUmodule module;
  CUfunction function;
  CUdeviceptr out;
  unsigned values[4];
  CHECK(cuModuleLoadData(&module, text.c_str()));
  CHECK(cuModuleGetFunction(&function, module, "k"));
  CHECK(cuMemAlloc(&out, sizeof values));
  void* arguments[] = {&out};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  printf("indexed: %u %u %u %u\n", values[0], values[1], values[2], values[3]);
  CHECK(cuMemFree(out));
  CHECK(cuModuleUnload(module));
}

// A function's parameter and a call's argument in registers, by a table of functions: i + 10 of the
// even threads, 2 * i of the odd ones.
void RegisterArguments() {
  const std::string text =
      std::string(kHeader) +
      ".extern .global .u64 table[2];\n"
      ".visible .func (.param .b32 r) plus(.reg .u64 to, .param .b32 i) {\n.reg .b32 %r<3>;\n"
      "ld.param.b32 %r0, [i];\nadd.u32 %r1, %r0, 10;\nst.global.u32 [to], %r1;\n"
      "st.param.b32 [r], %r1;\nret; }\n"
      ".visible .func (.param .b32 r) twice(.reg .u64 to, .param .b32 i) {\n.reg .b32 %r<3>;\n"
      "ld.param.b32 %r0, [i];\nadd.u32 %r1, %r0, %r0;\nst.global.u32 [to], %r1;\n"
      "st.param.b32 [r], %r1;\nret; }\n"
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<5>; .reg .b64 %rd<4>;\n"
      "mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [out];\nmul.wide.u32 %rd1, %r0, 8;\n"
      "add.u64 %rd0, %rd0, %rd1;\nand.b32 %r1, %r0, 1;\nld.global.u64 %rd2, table[%r1];\n{\n"
      "proto: .callprototype (.param .b32 r) _(.reg .u64 to, .param .b32 i);\n"
      ".param .b32 result;\n.param .b32 in;\nst.param.b32 [in], %r0;\n"
      "call (result), %rd2, (%rd0, in), proto;\nld.param.b32 %r2, [result];\n}\n"
      "st.global.u32 [%rd0+4], %r2;\nret; }\n"
      ".visible .global .align 8 .u64 table[2] = {plus, twice};\n";
  CUmodule module;
  CUfunction function;
  CUdeviceptr out;
  unsigned values[8];
  CHECK(cuModuleLoadData(&module, text.c_str()));
  CHECK(cuModuleGetFunction(&function, module, "k"));
  CHECK(cuMemAlloc(&out, sizeof values));
  void* arguments[] = {&out};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  printf("register arguments:");
  for (const unsigned value : values) printf(" %u", value);
  printf("\n");
  CHECK(cuMemFree(out));
  CHECK(cuModuleUnload(module));
}

__global__ void ReadGranule(int* out) {
  extern __shared__ int words[];
  if (threadIdx.x < 2) words[threadIdx.x] = 1;
  __syncthreads();
  const int value = words[threadIdx.x];
  out[threadIdx.x] = threadIdx.x < 2 ? value : 0;
}

void Granule() {
  int* out;
  int values[32];
  CUDA_CHECK(cudaMalloc(&out, sizeof values));
  ReadGranule<<<1, 32, 2 * sizeof(int)>>>(out);
  CUDA_CHECK(cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost));
  printf("granule: %d %d %d\n", values[0], values[1], values[2]);
  CUDA_CHECK(cudaFree(out));
}

__global__ void Add(int* to, int value) { *to += value; }

// A copy and a kernel two graphs down get other parameters in the executable graph.
void InnerNodes(CUcontext context) {
  CUdeviceptr from, to;
  const int in[] = {5, 9};
  CHECK(cuMemAlloc(&from, sizeof in));
  CHECK(cuMemAlloc(&to, sizeof(int)));
  CHECK(cuMemcpyHtoD(from, in, sizeof in));
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = sizeof(int);
  copy.Height = copy.Depth = 1;
  int value = 1;
  void* arguments[] = {&to, &value};
  CUDA_KERNEL_NODE_PARAMS add = {};
  cudaFunction_t function;
  CUDA_CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&Add)));
  add.func = function;
  add.gridDimX = add.gridDimY = add.gridDimZ = 1;
  add.blockDimX = add.blockDimY = add.blockDimZ = 1;
  add.kernelParams = arguments;
  CUgraph innermost, middle, outer, inside;
  CUgraphNode copies, adds, child;
  CHECK(cuGraphCreate(&innermost, 0));
  CHECK(cuGraphAddMemcpyNode(&copies, innermost, NULL, 0, &copy, context));
  CHECK(cuGraphAddKernelNode(&adds, innermost, &copies, 1, &add));
  CHECK(cuGraphCreate(&middle, 0));
  CHECK(cuGraphAddChildGraphNode(&child, middle, NULL, 0, innermost));
  CHECK(cuGraphCreate(&outer, 0));
  CHECK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, middle));
  CHECK(cuGraphChildGraphNodeGetGraph(child, &inside));
  size_t count = 1;
  CHECK(cuGraphGetNodes(inside, &child, &count));
  CHECK(cuGraphChildGraphNodeGetGraph(child, &inside));
  CUgraphNode nodes[2];
  count = 2;
  CHECK(cuGraphGetNodes(inside, nodes, &count));
  CUgraphExec exec;
  CHECK(cuGraphInstantiate(&exec, outer, 0));
  for (int round = 0; round < 2; ++round) {
    int result = 0;
    CHECK(cuGraphLaunch(exec, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(&result, to, sizeof result));
    printf("inner nodes: %d\n", result);
    copy.srcDevice = from + sizeof(int);
    value = 100;
    CHECK(cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &copy, context));
    CHECK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &add));
  }
  CHECK(cuGraphExecDestroy(exec));
  for (CUgraph graph : {innermost, middle, outer}) CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFree(from));
  CHECK(cuMemFree(to));
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(NULL));
  CUcontext context;
  CHECK(cuCtxGetCurrent(&context));
  Links();
  Indexed();
  RegisterArguments();
  Granule();
  InnerNodes(context);
  return 0;
}

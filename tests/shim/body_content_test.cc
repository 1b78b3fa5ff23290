// A loop body has one name in every session whose client does the same, and else another name.
#include "shim/body_content.h"

#include <string>
#include <vector>

#include "shim/iterations/iterations.h"
#include "tests/shim/fixture.h"

namespace {

class BodyContentTest : public shim_test::InContext {
 protected:
  struct Launched {
    const char* kernel;
    unsigned grid = 1;
  };

  // The name of an iteration of these launches, of kernels of a module that is loaded for it.
  uint64_t NameOf(const std::vector<Launched>& launches, const std::string& image = kPtx) {
    CUmodule module = nullptr;
    EXPECT_EQ(local::cuModuleLoadData(&module, image.c_str()), CUDA_SUCCESS);
    Mark();
    for (const Launched& launched : launches) {
      CUfunction function = nullptr;
      EXPECT_EQ(local::cuModuleGetFunction(&function, module, launched.kernel), CUDA_SUCCESS);
      uint64_t argument = ++arguments_;
      void* params[] = {&argument, &argument, &argument};
      EXPECT_EQ(local::cuLaunchKernel(function, launched.grid, 1, 1, 1, 1, 1, 0, nullptr, params,
                                      nullptr),
                CUDA_SUCCESS);
    }
    Mark();
    const uint64_t name = shim::BodyContent::Process().NameOfLast();
    EXPECT_EQ(local::cuModuleUnload(module), CUDA_SUCCESS);
    return name;
  }

  static constexpr char kPtx[] = ".version 7.0\n.target sm_80\n";

 private:
  // The iteration ends before the next work.
  static void Mark() {
    shim::iterations::Iterations::Process().Mark(ipc::BoundarySource::kHeader);
    CUdeviceptr address = 0;
    ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
    ASSERT_EQ(local::cuMemsetD8_v2(address, 1, 4096), CUDA_SUCCESS);
    ASSERT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS);
  }
  uint64_t arguments_ = 0;
};

TEST_F(BodyContentTest, HandlesAndArgumentsAreNotInIt) {
  const uint64_t name = NameOf({{"f"}, {"g", 2}});
  EXPECT_NE(name, 0u);
  CUmodule before = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&before, kPtx), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetFunction(&function, before, "h"), CUDA_SUCCESS);
  EXPECT_EQ(NameOf({{"f"}, {"g", 2}}), name);
}

TEST_F(BodyContentTest, KernelsTheirModulesGridsAndOrderAreInIt) {
  const uint64_t name = NameOf({{"f"}, {"g", 2}});
  EXPECT_NE(NameOf({{"f"}, {"h", 2}}), name);
  EXPECT_NE(NameOf({{"f"}, {"g", 3}}), name);
  EXPECT_NE(NameOf({{"g", 2}, {"f"}}), name);
  EXPECT_NE(NameOf({{"f"}}), name);
  EXPECT_NE(NameOf({{"f"}, {"g", 2}}, std::string(kPtx) + "// of another version"), name);
  EXPECT_EQ(NameOf({{"f"}, {"g", 2}}), name);
}

}  // namespace

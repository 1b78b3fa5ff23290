#include "ipc/environment.h"

#include <gtest/gtest.h>

namespace ipc {
namespace {

using Strings = std::vector<std::string>;

Strings Clean(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return WithoutFacades(environment.data(), "/opt/lib/laneway");
}

TEST(EnvironmentTest, OtherVariablesStay) {
  EXPECT_EQ(Clean({"PATH=/bin", "LANEWAY_SOFTGPU=sms=2", "EMPTY="}),
            (Strings{"PATH=/bin", "LANEWAY_SOFTGPU=sms=2", "EMPTY="}));
}

TEST(EnvironmentTest, FacadesGoAndTheUsersOwnStay) {
  EXPECT_EQ(Clean({"LD_PRELOAD=/opt/lib/laneway/shim/libcuda.so.1:/usr/lib/mine.so",
                   "LD_LIBRARY_PATH=/opt/lib/laneway/shim:/opt/lib/laneway/runtime:/usr/lib/x",
                   "LANEWAY_JOB=7", "LANEWAY_TRANSPORT=zmq"}),
            (Strings{"LD_PRELOAD=/usr/lib/mine.so", "LD_LIBRARY_PATH=/usr/lib/x"}));
}

TEST(EnvironmentTest, ToolsOfOursGoFromThePath) {
  EXPECT_EQ(Clean({"PATH=/opt/lib/laneway/softgpu/bin:/my dir/bin:/bin"}),
            (Strings{"PATH=/my dir/bin:/bin"}));
}

TEST(EnvironmentTest, AListOfFacadesAloneVanishes) {
  EXPECT_EQ(Clean({"LD_PRELOAD=/opt/lib/laneway/shim/libcuda.so.1"}), Strings{});
}

TEST(EnvironmentTest, ANeighbouringDirectoryIsNotOurs) {
  EXPECT_EQ(Clean({"LD_LIBRARY_PATH=/opt/lib/laneway-other"}),
            (Strings{"LD_LIBRARY_PATH=/opt/lib/laneway-other"}));
}

TEST(EnvironmentTest, SetReplacesOrAdds) {
  Strings environment = {"A=1", "AB=2"};
  SetVariable(&environment, "A", "3");
  SetVariable(&environment, "C", "4");
  EXPECT_EQ(environment, (Strings{"A=3", "AB=2", "C=4"}));
}

}  // namespace
}  // namespace ipc

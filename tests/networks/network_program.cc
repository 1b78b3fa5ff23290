// A published network's operators on the software GPU in virtual time: on one stream, by Nimble's
// assignment and by the choice by cost, on streams and as CUDA graphs.
//
//     network_program --table FRONT_END_US    prints the table for LANEWAY_SOFTGPU=timing=FILE
//     network_program FRONT_END_US            issues all networks, prints a JSON object a line
//
// Times are microseconds by the device's events. `bound` is what the model of the device says when
// dependencies alone decide. Without virtual time the program refuses to run: its kernels are
// empty.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "scheduler/streams/choose.h"
#include "scheduler/streams/nimble.h"
#include "scheduler/streams/roofline.h"
#include "tests/networks/issue.h"
#include "tests/scheduler/streams/networks.h"

namespace networks {
namespace {

using namespace scheduler::streams;

constexpr const char* kNetworks[] = {"inception_v3",    "darts",          "amoebanet",
                                     "nasnet_a_mobile", "nasnet_a_large", "resnet50"};

void PrintTable(double front_end_us) {
  std::printf("device front_end_us %g\n", front_end_us);
  for (const char* const network : kNetworks) {
    const std::vector<Operator> operators = ReadNetwork(network);
    const std::vector<Cost> costs = CostsOf(operators, kV100);
    for (size_t node = 0; node < operators.size(); ++node) {
      std::printf("kernel %s %ux1x1 %.17g %.17g skip\n", KernelName(network, node).c_str(),
                  BlocksOf(operators[node]), costs[node].time_ns / 1e3, costs[node].share);
    }
  }
}

// Every operator on a stream of its own: nothing but dependencies delays it.
double BoundUs(const Dag& dag, const std::vector<Cost>& costs, double front_end_ns) {
  Placement apart = OneStream(dag);
  std::iota(apart.stream.begin(), apart.stream.end(), 0);
  return Makespan(dag, apart, costs, front_end_ns) / 1e3;
}

void PrintNetwork(const char* network, double front_end_us) {
  const std::vector<Operator> operators = ReadNetwork(network);
  const std::vector<Cost> costs = CostsOf(operators, kV100);
  const Dag dag = GraphOf(operators);
  const double front_end_ns = front_end_us * 1e3;
  const Assignment one = Synchronise(dag, OneStream(dag)), nimble = AssignNimble(dag);
  const Choice choice = Choose(dag, costs, front_end_ns);
  int64_t multiply_accumulates = 0;
  for (const Operator& each : operators) multiply_accumulates += each.multiply_accumulates;
  Issuer issuer(network, operators);
  std::printf("{\"network\": \"%s\", \"front_end_us\": %g, \"operators\": %zu, \"streams\": %d, ",
              network, front_end_us, operators.size(), nimble.streams);
  std::printf("\"chosen_streams\": %d, \"macs\": %lld, \"bound_us\": %.3f, ",
              choice.assignment.streams, static_cast<long long>(multiply_accumulates),
              BoundUs(dag, costs, front_end_ns));
  std::printf("\"one_us\": %.3f, \"one_again_us\": %.3f, ", issuer.OnStreams(one),
              issuer.OnStreams(one));
  std::printf("\"nimble_us\": %.3f, \"nimble_graph_us\": %.3f, ", issuer.OnStreams(nimble),
              issuer.AsGraph(nimble));
  std::printf("\"chosen_us\": %.3f, \"chosen_graph_us\": %.3f}\n",
              issuer.OnStreams(choice.assignment), issuer.AsGraph(choice.assignment));
}

int Run(double front_end_us) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  char name[256] = "";
  Need(cuInit(0), "cuInit");
  Need(cuDeviceGet(&device, 0), "cuDeviceGet");
  Need(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  if (std::strstr(name, "virtual time") == nullptr) {
    std::fprintf(stderr, "%s has no virtual time: set LANEWAY_SOFTGPU=timing=FILE\n", name);
    return 1;
  }
  Need(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (const char* const network : kNetworks) PrintNetwork(network, front_end_us);
  return 0;
}

}  // namespace
}  // namespace networks

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--table") == 0) {
    networks::PrintTable(std::strtod(argv[2], nullptr));
    return 0;
  }
  if (argc == 2) return networks::Run(std::strtod(argv[1], nullptr));
  std::fprintf(stderr, "usage: network_program [--table] FRONT_END_US\n");
  return 2;
}

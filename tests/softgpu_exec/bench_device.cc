// Kernels that programs are made of, interpreted and compiled: how long each takes, and that both
// compute the same bytes; the tiled product of matrices against OpenBLAS on one thread; a kernel's
// first launch. Times are of the process's CPU clock, so the machine's load matters less; those of
// first launches are by the clock on the wall.
#include <cblas.h>
#include <stdlib.h>
#include <time.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "softgpu/jit/compiler.h"
#include "tests/shim/bench/report.h"
#include "tests/softgpu_exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr int kPoints = 1 << 20, kSide = 512, kBodies = 2048;

double Seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Bench {
 public:
  Bench() : machine_(256u << 20) {
    std::ifstream file(BENCH_PTX);
    std::stringstream text;
    text << file.rdbuf();
    machine_.Load(text.str());
    for (int k = 0; k < 2; ++k) {
      std::vector<float> values(kPoints * 4);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 1.0f + static_cast<float>((i * 2654435761u >> 8 & 0xffff)) / 65536.0f;
      inputs_[k] = machine_.Upload(values);
    }
    std::vector<int> begin(kPoints / 16 + 1), columns(kPoints);
    for (size_t row = 0; row + 1 < begin.size(); ++row)
      begin[row + 1] = begin[row] + static_cast<int>(row * 7919 % 29) + 2;
    for (size_t k = 0; k < columns.size(); ++k)
      columns[k] = static_cast<int>(k * 2654435761u % kPoints);
    begin_ = machine_.Upload(begin);
    columns_ = machine_.Upload(columns);
    out_ = machine_.Allocate(kPoints * 16);
  }

  void Run(bench::Report* report) {
    const auto one = [&](const std::string& name, Dim3 grid, Dim3 block, const auto&... args) {
      Compare(report, name, [&, this] { return machine_.Run(name, grid, block, args...); });
    };
    const uint64_t a = inputs_[0], b = inputs_[1];
    one("saxpy", {kPoints / 256}, {256}, kPoints, 2.0f, a, out_);
    one("reduce", {64}, {256}, kPoints, a, out_);
    one("scan", {kPoints / 256}, {256}, a, out_);
    one("transpose", {kSide / 32, kSide / 32}, {32, 8}, kSide, a, out_);
    one("gemm_naive", {kSide / 32, kSide / 8}, {32, 8}, kSide, a, b, out_);
    one("gemm_tiled", {kSide / 32, kSide / 32}, {32, 8}, kSide, a, b, out_);
    one("stencil", {kSide / 32, kSide / 8}, {32, 8}, kSide, a, out_);
    one("nbody", {kBodies / 128}, {128}, kBodies, a, out_);
    one("histogram", {64}, {256}, kPoints, a, out_);
    one("black_scholes", {kPoints / 256}, {256}, kPoints, a, b, out_);
    one("spmv", {kPoints / 16 / 128}, {128}, kPoints / 16, begin_, columns_, a, b, out_);
    one("bitonic", {kPoints / 256}, {256}, out_);
    one("softmax", {256}, {32}, 1024, a, out_);
    jit::UseExecutor(jit::Executor::kLlvm, false);
    report->Add({"empty launch, compiled", "us", {EmptyLaunch()}, 5});
    report->Add({"gemm_tiled of OpenBLAS", "%", {100 * Sgemm() / tiled_}, 10, true});
    FirstLaunches(report);
  }

 private:
  // The fastest of a few launches in milliseconds, after one that warms up.
  std::vector<double> Time(const std::function<std::optional<Fault>()>& launch) {
    std::vector<double> samples;
    for (int k = 0; k < 6; ++k) {
      const double begin = Seconds(CLOCK_PROCESS_CPUTIME_ID);
      const std::optional<Fault> fault = launch();
      if (fault.has_value()) throw std::runtime_error(fault->ToString());
      if (k > 0) samples.push_back((Seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e3);
    }
    return samples;
  }

  std::vector<uint32_t> Outcome(const std::function<std::optional<Fault>()>& launch,
                                std::vector<double>* samples) {
    std::vector<uint32_t> start(kPoints * 4);
    for (size_t i = 0; i < start.size(); ++i)
      start[i] = static_cast<uint32_t>(i * 2654435761u >> 9);
    std::memcpy(reinterpret_cast<void*>(out_), start.data(), start.size() * 4);
    *samples = Time(launch);
    return machine_.Download<uint32_t>(out_, start.size());
  }

  void Compare(bench::Report* report, const std::string& name,
               const std::function<std::optional<Fault>()>& launch) {
    std::vector<double> interpreted, compiled;
    jit::UseExecutor(jit::Executor::kInterpreter, false);
    const std::vector<uint32_t> expected = Outcome(launch, &interpreted);
    jit::UseExecutor(jit::Executor::kLlvm, false);
    if (Outcome(launch, &compiled) != expected)
      throw std::runtime_error(name + ": both executors differ");
    if (name == "gemm_tiled") tiled_ = bench::Median(compiled);
    report->Add({name + ", interpreted", "ms", interpreted});
    report->Add({name + ", compiled", "ms", compiled});
    report->Add({name + ", gain", "x", {bench::Median(interpreted) / bench::Median(compiled)}});
  }

  // Microseconds each, over 1,000.
  double EmptyLaunch() {
    constexpr int kLaunches = 1000;
    machine_.Run("empty", {1}, {1});
    const double begin = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int k = 0; k < kLaunches; ++k) machine_.Run("empty", {1}, {1});
    return (Seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e6 / kLaunches;
  }

  // Milliseconds of the same product.
  double Sgemm() {
    const std::vector<float> a = machine_.Download<float>(inputs_[0], kSide * kSide);
    const std::vector<float> b = machine_.Download<float>(inputs_[1], kSide * kSide);
    openblas_set_num_threads(1);
    std::vector<float> c(kSide * kSide);
    std::vector<double> samples;
    for (int k = 0; k < 7; ++k) {
      const double begin = Seconds(CLOCK_PROCESS_CPUTIME_ID);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1, a.data(),
                  kSide, b.data(), kSide, 0, c.data(), kSide);
      samples.push_back((Seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e3);
    }
    return bench::Median(samples);
  }

  // A kernel of about 1,000 instructions.
  static std::string LongKernel() {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry chain(.param .u64 out)\n"
        "{\n.reg .f32 %f<3>;\n.reg .b32 %t;\n.reg .b64 %at;\nld.param.u64 %at, [out];\n"
        "mov.u32 %t, %tid.x;\nmad.wide.u32 %at, %t, 4, %at;\ncvt.rn.f32.u32 %f0, %t;\n"
        "mov.f32 %f1, 0f3f800000;\n";
    for (int k = 0; k < 500; ++k)
      text += "fma.rn.f32 %f1, %f0, %f1, %f0;\nadd.f32 %f0, %f0, %f1;\n";
    return text + "st.global.f32 [%at], %f1;\nret;\n}\n";
  }

  void FirstLaunches(bench::Report* report) {
    char cache[] = "/tmp/bench-device-XXXXXX";
    if (mkdtemp(cache) == nullptr) throw std::runtime_error("no temporary directory");
    setenv("XDG_CACHE_HOME", cache, 1);
    const auto first = [this](jit::Executor executor, bool keep) {
      jit::UseExecutor(executor, keep);
      machine_.Load(LongKernel());
      const double begin = Seconds(CLOCK_MONOTONIC);
      machine_.Run("chain", {1}, {32}, out_);
      return (Seconds(CLOCK_MONOTONIC) - begin) * 1e3;
    };
    const double unknown = first(jit::Executor::kAuto, true);
    const double compiled = first(jit::Executor::kLlvm, true);
    const uint64_t before = jit::CompiledLaunches();
    const double cached = first(jit::Executor::kAuto, true);
    std::filesystem::remove_all(cache);
    if (jit::CompiledLaunches() != before + 1) throw std::runtime_error("not found in the cache");
    report->Add({"first launch of 1,000 instructions", "ms", {unknown}, 150});
    report->Add({"same, compiled before it", "ms", {compiled}});
    report->Add({"same, from the cache", "ms", {cached}, 2});
  }

  Machine machine_;
  double tiled_ = 0;  // milliseconds of gemm_tiled, compiled
  uint64_t inputs_[2] = {}, begin_ = 0, columns_ = 0, out_ = 0;
};

}  // namespace
}  // namespace softgpu::testing

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::string_view(argv[1]) == "--json";
  try {
    softgpu::testing::Bench bench;
    std::string error;
    if (!softgpu::jit::CompilerWorks(&error)) throw std::runtime_error("no compiler: " + error);
    bench::Report report;
    bench.Run(&report);
    report.Print(json);
    return report.exit_code();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_device: %s\n", failure.what());
    return 1;
  }
}

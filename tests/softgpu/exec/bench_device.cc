// Kernels that programs are made of, interpreted, compiled, and as OpenCL on PoCL, all on the same
// two processors and with the same memory: how long each takes, and that all compute the same (both
// executors the same bytes). The tiled product of matrices against OpenBLAS; launches; a kernel's
// first launch. Rounds alternate between the sides, so that each ratio is of two neighbours in
// time.
#include <cblas.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "softgpu/jit/compiler.h"
#include "tests/shim/bench/report.h"
#include "tests/softgpu/exec/bench_launches.h"
#include "tests/softgpu/exec/bench_pocl.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr int kPoints = 1 << 20, kSide = 512, kBodies = 2048;
constexpr int kThreads = 2, kRounds = 9;
constexpr double kRoundMs = 4;  // short kernels run several times in a round

double Now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Milliseconds of one run, of `times` one after another.
double Time(const std::function<void()>& run, int times) {
  const double begin = Now();
  for (int k = 0; k < times; ++k) run();
  return (Now() - begin) / times;
}

// How often it runs in a round.
int Times(const std::function<void()>& run) {
  run();
  return std::max(1, static_cast<int>(kRoundMs / Time(run, 1)));
}

std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t k = 0; k < a.size(); ++k) ratios.push_back(a[k] / b[k]);
  return ratios;
}

// Sums in another order and other exponential functions differ this much.
bool AlmostEqual(uint32_t a, uint32_t b) {
  if (a == b) return true;
  float x, y;
  std::memcpy(&x, &a, 4);
  std::memcpy(&y, &b, 4);
  return std::abs(x - y) <= 1e-3f * std::abs(x) + 1e-5f;
}

class Bench {
 public:
  explicit Bench(bench::Report* report) : report_(report), machine_(256u << 20) {
    std::ifstream file(BENCH_PTX);
    std::stringstream text;
    text << file.rdbuf();
    machine_.Load(text.str());
    MakeInputs();
    pocl_ = Pocl::Open(BENCH_CL, kThreads, &why_no_pocl_);
    if (pocl_ == nullptr) return;
    for (const auto& [address, bytes] : memory_) pocl_->Share(address, bytes);
  }

  // `only`: this kernel, and nothing else; empty: all.
  void Run(const std::string& only) {
    only_ = only;
    const uint64_t a = inputs_[0], b = inputs_[1];
    One("saxpy", {kPoints / 256}, {256}, kPoints, 2.0f, a, out_);
    One("reduce", {64}, {256}, kPoints, a, out_);
    One("scan", {kPoints / 256}, {256}, a, out_);
    One("transpose", {kSide / 32, kSide / 32}, {32, 8}, kSide, a, out_);
    One("gemm_naive", {kSide / 32, kSide / 8}, {32, 8}, kSide, a, b, out_);
    One("gemm_tiled", {kSide / 32, kSide / 32}, {32, 8}, kSide, a, b, out_);
    One("stencil", {kSide / 32, kSide / 8}, {32, 8}, kSide, a, out_);
    One("nbody", {kBodies / 128}, {128}, kBodies, a, out_);
    One("histogram", {64}, {256}, kPoints, columns_, out_);
    One("black_scholes", {kPoints / 256}, {256}, kPoints, a, b, out_);
    One("spmv", {kPoints / 16 / 128}, {128}, kPoints / 16, begin_, columns_, a, b, out_);
    One("bitonic", {kPoints / 256}, {256}, out_);
    One("softmax", {256}, {32}, 1024, a, out_);
    if (!only.empty()) return;
    report_->Add({"geometric mean, of PoCL", "x", GeometricMeans(), 0.8, true});
    OfOpenBlas();
    FirstLaunches();
    if (pocl_ == nullptr) report_->Note("PoCL's side is missing: " + why_no_pocl_ + ".");
  }

 private:
  using Action = std::function<void()>;

  void MakeInputs() {
    for (int k = 0; k < 2; ++k) {
      std::vector<float> values(kPoints * 4);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 1.0f + static_cast<float>((i * 2654435761u >> 8 & 0xffff)) / 65536.0f;
      inputs_[k] = Upload(values);
    }
    std::vector<int> begin(kPoints / 16 + 1), columns(kPoints);
    for (size_t row = 0; row + 1 < begin.size(); ++row)
      begin[row + 1] = begin[row] + static_cast<int>(row * 7919 % 29) + 2;
    for (size_t k = 0; k < columns.size(); ++k)
      columns[k] = static_cast<int>(k * 2654435761u % kPoints);
    begin_ = Upload(begin);
    columns_ = Upload(columns);
    out_ = Upload(std::vector<float>(kPoints * 4));
  }

  template <class T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = machine_.Upload(values);
    memory_.emplace_back(address, values.size() * sizeof(T));
    return address;
  }

  template <class... Args>
  void One(const std::string& name, Dim3 grid, Dim3 block, const Args&... args) {
    if (!only_.empty() && name != only_) return;
    const Action device = [=, this] {
      const std::optional<Fault> fault = machine_.Run(name, grid, block, args...);
      if (fault.has_value()) throw std::runtime_error(fault->ToString());
    };
    Compare(name, device,
            pocl_ == nullptr ? nullptr : pocl_->Prepare(name, grid, block, {args...}));
  }

  // What it leaves in out_.
  std::vector<uint32_t> Outcome(const Action& run) {
    std::vector<uint32_t> start(kPoints * 4);
    for (size_t i = 0; i < start.size(); ++i)
      start[i] = static_cast<uint32_t>(i * 2654435761u >> 9) & 0x3fff'ffff;  // floats up to 2
    std::memcpy(reinterpret_cast<void*>(out_), start.data(), start.size() * 4);
    if (pocl_ != nullptr) pocl_->Publish();
    run();
    if (pocl_ != nullptr) pocl_->Publish();
    return machine_.Download<uint32_t>(out_, start.size());
  }

  void Compare(const std::string& name, const Action& device, const Action& pocl) {
    jit::UseExecutor(jit::Executor::kInterpreter, false);
    const std::vector<uint32_t> expected = Outcome(device);
    std::vector<double> interpreted, compiled, on_pocl;
    for (int k = 0; k < 3; ++k) interpreted.push_back(Time(device, 1));
    jit::UseExecutor(jit::Executor::kLlvm, false);
    if (Outcome(device) != expected) throw std::runtime_error(name + ": both executors differ");
    if (pocl != nullptr) {
      const std::vector<uint32_t> other = Outcome(pocl);
      if (!std::equal(other.begin(), other.end(), expected.begin(), AlmostEqual))
        throw std::runtime_error(name + ": PoCL computes something else");
    }
    const int times = Times(device), pocl_times = pocl == nullptr ? 0 : Times(pocl);
    for (int k = 0; k < kRounds; ++k) {
      compiled.push_back(Time(device, times));
      if (pocl != nullptr) on_pocl.push_back(Time(pocl, pocl_times));
    }
    report_->Add({name + ", interpreted", "ms", interpreted});
    report_->Add({name + ", compiled", "ms", compiled});
    report_->Add({name + ", PoCL", "ms", on_pocl});
    report_->Add({name + ", compiled, of PoCL", "x", Ratios(on_pocl, compiled), 0.5, true});
    of_pocl_.push_back(Ratios(on_pocl, compiled));
  }

  // Of all kernels, round by round.
  std::vector<double> GeometricMeans() const {
    std::vector<double> means;
    for (size_t round = 0; round < of_pocl_[0].size(); ++round) {
      double sum = 0;
      for (const std::vector<double>& ratios : of_pocl_) sum += std::log(ratios[round]);
      means.push_back(std::exp(sum / static_cast<double>(of_pocl_.size())));
    }
    return means;
  }

  void OfOpenBlas() {
    const std::vector<float> a = machine_.Download<float>(inputs_[0], kSide * kSide);
    const std::vector<float> b = machine_.Download<float>(inputs_[1], kSide * kSide);
    std::vector<float> c(kSide * kSide);
    openblas_set_num_threads(kThreads);
    const Action blas = [&] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1, a.data(),
                  kSide, b.data(), kSide, 0, c.data(), kSide);
    };
    const Action tiled = [this] {
      machine_.Run("gemm_tiled", {kSide / 32, kSide / 32}, {32, 8}, kSide, inputs_[0], inputs_[1],
                   out_);
    };
    const int times = Times(blas);
    std::vector<double> percent;
    for (int k = 0; k < kRounds; ++k) {
      const double ours = Time(tiled, 1);
      percent.push_back(100 * Time(blas, times) / ours);
    }
    report_->Add({"gemm_tiled, compiled, of OpenBLAS", "%", percent, 10, true});
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

  void FirstLaunches() {
    char cache[] = "/tmp/bench-device-XXXXXX";
    if (mkdtemp(cache) == nullptr) throw std::runtime_error("no temporary directory");
    setenv("XDG_CACHE_HOME", cache, 1);
    const auto first = [this](jit::Executor executor, bool keep) {
      jit::UseExecutor(executor, keep);
      machine_.Load(LongKernel());
      return Time([this] { machine_.Run("chain", {1}, {32}, out_); }, 1);
    };
    const double unknown = first(jit::Executor::kAuto, true);
    const double compiled = first(jit::Executor::kLlvm, true);
    const uint64_t before = jit::CompiledLaunches();
    const double cached = first(jit::Executor::kAuto, true);
    std::filesystem::remove_all(cache);
    if (jit::CompiledLaunches() != before + 1) throw std::runtime_error("not found in the cache");
    report_->Add({"first launch of 1,000 instructions", "ms", {unknown}, 150});
    report_->Add({"same, compiled before it", "ms", {compiled}});
    report_->Add({"same, from the cache", "ms", {cached}, 2});
  }

  bench::Report* const report_;
  Machine machine_;
  std::unique_ptr<Pocl> pocl_;
  std::string why_no_pocl_, only_;
  std::vector<std::pair<uint64_t, size_t>> memory_;
  std::vector<std::vector<double>> of_pocl_;  // by kernel and round
  uint64_t inputs_[2] = {}, begin_ = 0, columns_ = 0, out_ = 0;
};

// Every side takes as many threads as there are processors.
void StayOnProcessors(int count) {
  cpu_set_t all, some;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&some);
  for (int n = 0; n < CPU_SETSIZE && CPU_COUNT(&some) < count; ++n) {
    if (CPU_ISSET(n, &all)) CPU_SET(n, &some);
  }
  sched_setaffinity(0, sizeof some, &some);
}

// OpenBLAS's threads spin for some 20 ms after a product, on the processors that the kernels then
// run on. How long is read when the library is loaded: this program begins again.
void LetOpenBlasRest(char** argv) {
  constexpr const char* kTimeout = "OPENBLAS_THREAD_TIMEOUT";  // the logarithm of its cycles
  if (getenv(kTimeout) != nullptr) return;
  setenv(kTimeout, "4", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace
}  // namespace softgpu::testing

int main(int argc, char** argv) {
  using namespace softgpu;
  const std::string word = argc > 1 ? argv[1] : "";  // --json, or the name of a kernel
  const bool json = word == "--json";
  testing::LetOpenBlasRest(argv);
  try {
    testing::StayOnProcessors(testing::kThreads);
    bench::Report report;
    if (json || word.empty())
      testing::MeasureLaunches(&report);  // a process of its own: before there are threads
    testing::Bench bench(&report);
    std::string error;
    if (!jit::CompilerWorks(&error)) throw std::runtime_error("no compiler: " + error);
    bench.Run(json ? "" : word);
    report.Print(json);
    return report.exit_code();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_device: %s\n", failure.what());
    return 1;
  }
}

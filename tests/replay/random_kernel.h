// A random kernel that computes addresses in the ways that compilers do, and stays within its
// buffers. A kernel that sweeps has many stores at an index of the thread. Thread safety: none.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace replay::testing {

inline constexpr int kBuffers = 4;
inline constexpr uint64_t kBufferBytes = 4096;
// A kernel reaches this far from an address that it is given, which lies in the first half.
inline constexpr uint64_t kReach = 1024;

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed, bool sweeps = false) : random_(seed), sweeps_(sweeps) {}
  // A module with one kernel `k`: parameters are kBuffers addresses, a structure of two more (of
  // buffers 0 and 1), a number of 32 bits and one of 64, both below 32.
  std::string Text();

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  const std::string& Any(const std::vector<std::string>& pool) { return pool[Below(pool.size())]; }
  std::string New32() { return "%r" + std::to_string(next32_++); }
  std::string New64() { return "%rd" + std::to_string(next64_++); }
  std::string NewPredicate() { return "%p" + std::to_string(next_predicate_++); }
  void Line(const std::string& line) { body_ += "  " + line + "\n"; }

  void Statement();
  void Sweep();
  std::string SweptIndex();
  std::string Comparison(const std::string& index);
  std::string Bound(const std::string& index);
  void Index();
  void WideIndex();
  void Address();
  void Choose();
  void Keep();
  void Halves();
  void Loop();
  void ThroughFunction();
  void Load();
  void Store();
  void Update();
  std::string Place();

  std::mt19937_64 random_;
  const bool sweeps_;
  std::string body_;
  std::vector<std::string> addresses_, indices_, wide_, data_;  // indices are below 32
  int next32_ = 1, next64_ = 1, next_predicate_ = 64, label_ = 0;
};

}  // namespace replay::testing

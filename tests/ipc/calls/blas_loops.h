// Plain loops over the definitions of functions of cuBLAS, for one of each kind of operand: which
// elements they touch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>

#include "ipc/calls/blas_operands.h"

namespace ipc::blas {

class Given : public Numbers {
 public:
  int64_t Integer(uint8_t parameter) const override { return values_.at(parameter); }
  bool IsZero(uint8_t scalar) const override { return zeros.count(scalar) != 0; }
  int64_t& operator[](int parameter) { return values_[static_cast<uint8_t>(parameter)]; }
  int64_t operator()(int parameter) const { return Integer(static_cast<uint8_t>(parameter)); }

  std::set<uint8_t> zeros;

 private:
  std::map<uint8_t, int64_t> values_;
};

// Offsets in elements that a loop touches, by parameter.
using Touched = std::map<int, std::set<int64_t>>;

struct Loop {
  const char* function;
  std::function<void(std::mt19937*, Given*)> draw;
  std::function<void(const Given&, Touched*)> run;
};

std::span<const Loop> Loops();

int64_t Draw(std::mt19937* random, int64_t least, int64_t most);

}  // namespace ipc::blas

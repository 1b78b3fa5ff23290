// Names the body of the process's last iteration by what it consists of: each operation with its
// sizes, kernels by their names and the bytes of their modules, and the device. Addresses and
// handles are not in it. Thread safety: under the send lock.
#pragma once

#include <cstdint>

#include "shim/kept_verdicts.h"

namespace shim {

class BodyContent final : public BodyNamer {
 public:
  static BodyContent& Process();
  uint64_t NameOfLast() override;
};

}  // namespace shim

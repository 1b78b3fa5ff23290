// The CUDA version that the software GPU's driver and tools say they are of. Thread safety: a
// constant.
#pragma once

namespace softgpu {

inline constexpr int kDriverVersion = 13000;  // 1000 x major + 10 x minor, as cuDriverGetVersion's

}  // namespace softgpu

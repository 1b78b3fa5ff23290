// Why this device does not have a call: what the error log says when a program makes it.
// Thread safety: a function without state.
#pragma once

#include <string_view>

namespace softgpu {

// Of a documented call that nothing here implements.
std::string_view RefusalReason(std::string_view call);

}  // namespace softgpu

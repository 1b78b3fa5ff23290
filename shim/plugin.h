// Libraries of ours that the client loads only when it needs them. Thread safety: all functions.
#pragma once

namespace shim {

// The function of a library that lies beside the client's; null when it can't be loaded: dlerror()
// says why.
void* PluginFunction(const char* library, const char* function);

}  // namespace shim

#include "shim/zmq_plugin.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ipc/zmq_channel.h"

namespace shim {
namespace {

// Beside the library that this code is in.
std::string PluginPath() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&ConnectZmq), &here) == 0) return ipc::kZmqPluginName;
  const std::string library = here.dli_fname;
  return absl::StrCat(library.substr(0, library.rfind('/') + 1), ipc::kZmqPluginName);
}

}  // namespace

absl::StatusOr<ipc::Channel> ConnectZmq(const char* endpoint, const ipc::CallToken& token) {
  const std::string path = PluginPath();
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* const symbol = plugin == nullptr ? nullptr : dlsym(plugin, ipc::kZmqConnectSymbol);
  if (symbol == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("the ZeroMQ transport can't be loaded: ", dlerror()));
  }
  ipc::Channel channel;
  char error[256] = "";
  if (!reinterpret_cast<ipc::ZmqConnectFunction*>(symbol)(endpoint, token, &channel, error,
                                                          sizeof error)) {
    return absl::UnavailableError(error);
  }
  return channel;
}

}  // namespace shim

#include "shim/zmq_plugin.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "ipc/zmq_channel.h"
#include "shim/plugin.h"

namespace shim {

absl::StatusOr<ipc::Channel> ConnectZmq(const char* endpoint, const ipc::CallToken& token) {
  void* const symbol = PluginFunction(ipc::kZmqPluginName, ipc::kZmqConnectSymbol);
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

// The client's half of the hello (ipc/hello.h), for whatever kind of session. Thread safety:
// stateless.
#pragma once

#include "ipc/calls/vendor.h"

#include <string>
#include <vector>

#include "ipc/hello.h"
#include "ipc/unique_fd.h"

namespace shim {

// What went wrong, in the driver's code and in words.
struct ConnectError {
  CUresult code = CUDA_SUCCESS;
  std::string sentence;
};

// What this process is, and what its environment asks for.
ipc::Hello MakeHello();

struct Welcomed {
  ipc::Welcome welcome;
  std::vector<ipc::UniqueFd> fds;  // never empty
  ipc::UniqueFd socket;
};

// Says hello to the daemon of the runtime directory. False: *error says why.
bool SayHello(const ipc::Hello& hello, Welcomed* welcomed, ConnectError* error);

}  // namespace shim

// The process that holds a function on the device: a child of the front (functions/front/), with
// one socket, on which requests come one at a time. It ends when the front closes the socket, and
// when the device or its session is lost: the front then starts another.
#pragma once

#include <string>

namespace functions {

// The first frame says that requests may come, or why not. Returns the process's exit code.
int RunEngine(const std::string& name, int socket);

}  // namespace functions

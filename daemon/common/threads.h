// Threads that the process can do without. The system limits the threads of a process and of a
// user, and the user's programs can use them up. Thread safety: any thread.
#pragma once

#include <functional>
#include <thread>

namespace common {

// Returns a thread that is not joinable when the system has none left, and logs the purpose.
std::thread StartThread(const char* purpose, std::function<void()> run);

}  // namespace common

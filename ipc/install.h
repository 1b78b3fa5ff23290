// Where the files of this build or installation lie, found from the running binary:
// bin/{laneway,lanewayd,laneway-keeper,laneway-worker}, lib/laneway/{runtime,shim,softgpu}/.
// The build tree has the same layout. Thread safety: stateless.
#pragma once

#include <string>

namespace ipc {

// The directory above bin/ of the running executable. Empty when /proc can't tell.
std::string InstallPrefix();

std::string BinaryPath(const std::string& name);  // bin/NAME
std::string LibraryPath(const std::string& directory,
                        const std::string& name);  // lib/laneway/DIR/NAME
std::string LibraryRoot();                         // lib/laneway

}  // namespace ipc

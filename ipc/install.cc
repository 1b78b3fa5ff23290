#include "ipc/install.h"

#include <limits.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace ipc {
namespace {

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

std::string InstallPrefix() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return {};
  return Parent(Parent(std::string(path, static_cast<size_t>(length))));
}

std::string BinaryPath(const std::string& name) {
  return absl::StrCat(InstallPrefix(), "/bin/", name);
}

std::string LibraryRoot() { return absl::StrCat(InstallPrefix(), "/lib/laneway"); }

std::string LibraryPath(const std::string& directory, const std::string& name) {
  return absl::StrCat(LibraryRoot(), "/", directory, "/", name);
}

}  // namespace ipc

// The vendor's library that a library of ours stands in front of, under the same SONAME.
//
// Ours exports kStandIn, so that it is told from the vendor's wherever the two lie. Thread safety:
// any thread; reads the environment.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace base {

inline constexpr char kStandIn[] = "laneway_stand_in";

namespace vendor_library {

inline std::vector<std::string> Directories(std::initializer_list<const char*> roots,
                                            std::initializer_list<const char*> usual) {
  std::vector<std::string> directories;
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = rest.find_first_of(":;");
    directories.emplace_back(end == 0 ? "." : rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  for (const char* const variable : roots) {
    const char* const root = std::getenv(variable);
    if (root == nullptr) continue;
    for (const char* const below : {"/lib64", "/lib"})
      directories.push_back(std::string(root) + below);
  }
  directories.insert(directories.end(), usual.begin(), usual.end());
  return directories;
}

}  // namespace vendor_library

// The library called `name` in LD_LIBRARY_PATH, below the directories that the variables `roots`
// name, or in the `usual` directories. Null: there is none that is not ours.
inline void* OpenVendorLibrary(const char* name, std::initializer_list<const char*> roots,
                               std::initializer_list<const char*> usual) {
  for (const std::string& directory : vendor_library::Directories(roots, usual)) {
    // By its path: under its SONAME the library that asks would be found.
    void* const library = dlopen((directory + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && dlsym(library, kStandIn) == nullptr) return library;
  }
  return nullptr;
}

}  // namespace base

// In one file of a library of ours that stands in front of a vendor's.
#define LANEWAY_STAND_IN \
  extern "C" __attribute__((visibility("default"))) const char laneway_stand_in = 1

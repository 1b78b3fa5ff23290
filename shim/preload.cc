// The facades come in before the program opens a first library, each for itself: they are loaded
// (RTLD_LOCAL), not preloaded. The loader takes a library that is loaded under a SONAME for every
// later search for that SONAME. So a library that the program opens is linked to the facade, and
// the program finds the facade itself. A process that opens no library is spared the time.
//
// A preloaded facade would be found, too, but every library would see its functions. A library that
// keeps the driver's functions in variables of their names (cuew, slang-rhi) would have its
// variables bound to the facade's code, and its first store would end the program.
//
// What the program itself is linked to is loaded before any code runs. The library path leads to
// the facades, unless a run path that precedes it (DT_RPATH) leads elsewhere, or the program was
// started with another library path. Then the program is started again, by the same process, with
// the facades preloaded for this once.
#include "shim/preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/environment.h"
#include "shim/facades.h"

namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";

enum class Place {
  kFree,    // nothing is loaded under the facade's SONAME
  kFacade,  // the facade is
  kTaken,   // another library is
};

const char* SonameOf(const link_map& object) {
  const char* strings = nullptr;
  size_t name = 0;
  for (const ElfW(Dyn)* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
  }
  // The loader writes addresses into these tables, but not into the kernel's own object.
  const bool usable = reinterpret_cast<ElfW(Addr)>(strings) > object.l_addr;
  return name == 0 || !usable ? "" : strings + name;
}

const link_map* FirstObject() {
  Dl_info info;
  link_map* object = nullptr;
  dladdr1(reinterpret_cast<const void*>(&kPreload), &info, reinterpret_cast<void**>(&object),
          RTLD_DL_LINKMAP);
  while (object != nullptr && object->l_prev != nullptr) object = object->l_prev;
  return object;
}

bool IsSameFile(const char* one, const char* other) {
  struct stat first, second;
  return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

Place PlaceOf(size_t i, const link_map* objects) {
  for (const link_map* object = objects; object != nullptr; object = object->l_next) {
    if (std::strcmp(SonameOf(*object), facades::All()[i].soname) != 0) continue;
    const bool ours = IsSameFile(object->l_name, facades::PathOf(i).c_str());
    return ours ? Place::kFacade : Place::kTaken;
  }
  return Place::kFree;
}

char** PreloadVariable() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(kPreload)) return entry;
  }
  return nullptr;
}

// What is preloaded behind this library where the program is started again.
std::string FacadesInList() {
  std::string list;
  for (size_t i = 0; i < facades::All().size(); ++i) list += ":" + facades::PathOf(i);
  return list;
}

// The command line that the kernel was given. Of `ld.so PROGRAM`, the program's arguments lack the
// first word.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<char*> WordsOf(std::string* line) {
  std::vector<char*> words;
  for (size_t at = 0; at < line->size(); at = line->find('\0', at) + 1) {
    words.push_back(line->data() + at);
  }
  words.push_back(nullptr);
  return words;
}

// Returns only when it can't be done: without /proc, or with the facades preloaded already.
void StartAgain() {
  char** const variable = PreloadVariable();
  if (variable == nullptr) return;
  std::string list = *variable;
  const size_t own = list.find(facades::OwnPath());
  if (own == std::string::npos || list.find(FacadesInList()) != std::string::npos) return;
  list.insert(own + facades::OwnPath().size(), FacadesInList());
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return;
  program[length] = '\0';
  std::string line = CommandLine();
  char* const before = *variable;
  *variable = list.data();
  execve(program, WordsOf(&line).data(), environ);
  *variable = before;
}

// The program's children find their own facades. In place: the program may keep pointers to it.
void ForgetFacadesInList() {
  char** const variable = PreloadVariable();
  if (variable == nullptr) return;
  const std::string facades = FacadesInList();
  char* const begin = std::strstr(*variable, facades.c_str());
  if (begin == nullptr) return;
  const char* const rest = begin + facades.size();
  std::memmove(begin, rest, std::strlen(rest) + 1);
}

void Load(size_t i) {
  if (laneway_real_dlopen()(facades::PathOf(i).c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
  std::fprintf(stderr, "laneway: %s; install or build Laneway completely\n", dlerror());
}

// Wheels bring compilers' libraries of their own and find them by a run path, before any library
// path. One that is loaded under its SONAME precedes them. None is missed where it was not built.
void LoadCompilers() {
  const char* const directory = std::getenv(ipc::kCompilersVariable);
  if (directory == nullptr) return;
  for (const char* const soname : {"libnvrtc.so.13", "libnvJitLink.so.13"}) {
    const std::string path = std::string(directory) + "/" + soname;
    (void)laneway_real_dlopen()(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
}

__attribute__((constructor)) void FindFacades() {
  const link_map* const objects = FirstObject();
  for (size_t i = 0; i < facades::All().size(); ++i) {
    if (PlaceOf(i, objects) == Place::kTaken) StartAgain();
  }
  ForgetFacadesInList();
}

}  // namespace

namespace facades {

// No thread can wait here for one that waits for the loader: whoever is inside a dlopen has passed
// this place.
void LoadAll() {
  static const bool loaded = [] {
    for (size_t i = 0; i < All().size(); ++i) Load(i);
    LoadCompilers();
    return true;
  }();
  (void)loaded;
}

}  // namespace facades

// dlopen by any name of a replaced library reaches the facade.
//
// `laneway run` preloads this library and puts the facades first in LD_LIBRARY_PATH, so that a bare
// name finds them anyway; a program that scans directories and opens an absolute path does not ask.
// The file name is changed and the real dlopen is entered by a jump, so that glibc sees the program
// as its caller: it looks at the caller's RUNPATH.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <string>

namespace {

using Dlopen = void*(const char*, int);

struct Replaced {
  const char* name;
  const char* facade;  // from the directory of this library
};
constexpr Replaced kReplaced[] = {
    {"libcuda.so", "libcuda.so.1"},
    {"libcuda.so.1", "libcuda.so.1"},
#ifndef LANEWAY_REPLACES_DRIVER_ALONE  // in-process mode: the program's other libraries are its own
    {"libcudart.so.13", "../runtime/libcudart.so.13"},
    {"libcublas.so.13", "libcublas.so.13"},
    {"libcublasLt.so.13", "libcublasLt.so.13"},
#endif
};
constexpr size_t kReplacedCount = sizeof kReplaced / sizeof *kReplaced;

std::string DirectoryOfThisLibrary() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&kReplaced), &here) == 0) return {};
  const std::string path = here.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// Full paths, made once: dlopen keeps no copy of what it is given while it works.
const std::string* FacadePaths() {
  static const std::string* const paths = [] {
    std::string* const made = new std::string[kReplacedCount];
    const std::string directory = DirectoryOfThisLibrary();
    for (size_t i = 0; i < kReplacedCount; ++i) made[i] = directory + kReplaced[i].facade;
    return made;
  }();
  return paths;
}

}  // namespace

extern "C" {

// For the jump below: the name to open.
const char* laneway_facade_name(const char* name) {
  if (name == nullptr) return nullptr;
  const char* const slash = std::strrchr(name, '/');
  const char* const base = slash == nullptr ? name : slash + 1;
  for (size_t i = 0; i < kReplacedCount; ++i) {
    if (std::strcmp(base, kReplaced[i].name) == 0) return FacadePaths()[i].c_str();
  }
  return name;
}

Dlopen* laneway_real_dlopen() {
  static std::atomic<Dlopen*> real{nullptr};
  Dlopen* found = real.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Dlopen*>(dlsym(RTLD_NEXT, "dlopen"));
    real.store(found, std::memory_order_relaxed);
  }
  return found;
}

}  // extern "C"

// dlopen(name, flags): both calls keep the stack aligned, then everything is as the caller left it
// but the name.
asm(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  .cfi_startproc
  endbr64
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  call laneway_facade_name
  pushq %rax
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call laneway_real_dlopen
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlopen, .-dlopen
)");

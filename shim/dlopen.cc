// dlopen by any name of a replaced library reaches the facade.
//
// A bare SONAME finds the facade anyway, which has been loaded (shim/preload.cc). A program that
// scans directories and opens an absolute path does not ask, nor does one that wants libcuda.so.
// The file name is changed and the real dlopen is entered by a jump, so that glibc sees the program
// as its caller: it looks at the caller's RUNPATH.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "shim/facades.h"
#include "shim/preload.h"

namespace {

using Dlopen = void*(const char*, int);

}  // namespace

extern "C" {

// For the jump below: the name to open.
const char* laneway_facade_name(const char* name) {
  if (name == nullptr) return nullptr;
  facades::LoadAll();
  const char* const slash = std::strrchr(name, '/');
  const char* const base = slash == nullptr ? name : slash + 1;
  for (size_t i = 0; i < facades::All().size(); ++i) {
    const facades::Facade& facade = facades::All()[i];
    const bool linkers = facade.unsoname != nullptr && std::strcmp(base, facade.unsoname) == 0;
    if (linkers || std::strcmp(base, facade.soname) == 0) return facades::PathOf(i).c_str();
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

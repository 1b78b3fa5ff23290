// Iterations written as text: a letter is a kernel of that name, '|' a wait of the host before the
// next one. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ipc/calls/limits.h"
#include "replay/template.h"

namespace replay::testing {

struct LetterArguments {
  LaunchShape shape;
  uint64_t address = ipc::limits::kSlotBase + 4096;
  uint32_t number = 0;
  uint32_t other = 0;
};

class Letters {
 public:
  Letters() {
    const Field parameters[] = {{0, 8}, {8, 4}, {12, 4}};
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      const ModuleContent module = {static_cast<uint64_t>(letter)};
      callees_.Intern(KernelCallee(module, std::string(1, letter), parameters, 16));
    }
  }

  const Callees& callees() const { return callees_; }
  Callees* mutable_callees() { return &callees_; }
  static OpKey Key(char letter, bool waited = false) {
    return {static_cast<uint32_t>(letter - 'a'), 1, waited};
  }
  static std::span<const std::byte> Bytes(const LetterArguments& arguments) {
    return std::as_bytes(std::span(&arguments, 1));
  }
  // All with these arguments.
  static OpStream Iteration(std::string_view text, const LetterArguments& arguments = {}) {
    OpStream ops;
    bool waited = false;
    for (const char letter : text) {
      if (letter != '|') ops.Add({Key(letter, waited), Bytes(arguments)});
      waited = letter == '|';
    }
    return ops;
  }

 private:
  Callees callees_;
};

}  // namespace replay::testing

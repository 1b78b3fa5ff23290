// The flags of the two digits programs: "--name value" pairs.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

class Flags {
 public:
  Flags(int argc, char** argv, const char* usage) : argc_(argc), argv_(argv), usage_(usage) {}

  // True while there are flags; then name() and Text() or Number() are the current one's.
  bool Next() {
    index_ += index_ == 0 ? 1 : 2;
    if (index_ >= argc_) return false;
    if (index_ + 1 >= argc_) Refuse();
    return true;
  }
  bool Is(const char* name) const { return std::strcmp(argv_[index_], name) == 0; }
  std::string Text() const { return argv_[index_ + 1]; }
  long Number(long smallest, long largest) const {
    char* end = nullptr;
    const long value = std::strtol(argv_[index_ + 1], &end, 10);
    if (end == argv_[index_ + 1] || *end != 0 || value < smallest || value > largest) Refuse();
    return value;
  }
  [[noreturn]] void Refuse() const {
    std::fprintf(stderr, "usage: %s\n", usage_);
    std::exit(2);
  }

 private:
  int argc_;
  char** argv_;
  const char* usage_;
  int index_ = 0;
};

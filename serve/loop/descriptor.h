// A file descriptor with one owner, which closes it. Thread safety: like an int.
#pragma once

#include <unistd.h>

#include <utility>

namespace serve {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() { Reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  void Reset() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace serve

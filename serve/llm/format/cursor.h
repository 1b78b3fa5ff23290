// Reads numbers, texts and bytes of an untrusted file one after the other. After the first read
// past the end nothing is read any more, and ok() is false. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace serve::llm {

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : all_(bytes) {}

  // Little-endian, as the processor's own.
  template <typename T>
  T Number() {
    T value{};
    const std::span<const std::byte> from = Bytes(sizeof value);
    if (from.size() == sizeof value) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  // A u64 length and as many bytes.
  std::string_view Text() {
    const std::span<const std::byte> from = Bytes(Number<uint64_t>());
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::byte> Bytes(uint64_t count) {
    ok_ = ok_ && count <= left();
    if (!ok_) return {};
    const std::span<const std::byte> taken = all_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  size_t left() const { return all_.size() - at_; }

 private:
  std::span<const std::byte> all_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace serve::llm

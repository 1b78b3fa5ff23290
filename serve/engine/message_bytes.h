// Bytes of messages between a front and its engine. A message type lists its fields once, in
//
//     template <typename Archive> void Fields(Archive& archive, Message& message)
//
// beside its declaration. The list serves for writing and for reading. Numbers are as the machine
// has them; texts and lists are a u32 count and their elements. There is one encoding of each
// message: whatever is decoded is encoded to the same bytes again.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "serve/engine/frames.h"

namespace serve::engine {

template <typename T>
concept PlainNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class MessageWriter {
 public:
  template <PlainNumber T>
  void operator()(T& number) {
    const std::byte* const at = reinterpret_cast<const std::byte*>(&number);
    bytes_.insert(bytes_.end(), at, at + sizeof number);
  }
  void operator()(std::string& text) {
    Count(text.size());
    for (char& letter : text) (*this)(letter);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    Count(list.size());
    if constexpr (PlainNumber<T>) {
      const std::byte* const at = reinterpret_cast<const std::byte*>(list.data());
      bytes_.insert(bytes_.end(), at, at + list.size() * sizeof(T));
    } else {
      for (T& element : list) (*this)(element);
    }
  }
  template <typename First, typename Second>
  void operator()(std::pair<First, Second>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T>
  requires std::is_class_v<T>
  void operator()(T& message) { Fields(*this, message); }

  Bytes Take() { return std::move(bytes_); }

 private:
  void Count(size_t count) {
    uint32_t number = static_cast<uint32_t>(count);
    (*this)(number);
  }

  Bytes bytes_;
};

// Bytes of a process that may have been taken over. Each count is checked against the bytes that
// are left: a list is never longer than its message. After the first fault all reads are
// without effect.
class MessageReaderUntrusted {
 public:
  explicit MessageReaderUntrusted(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <PlainNumber T>
  void operator()(T& number) {
    if (!Has(sizeof number)) return;
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_ = bytes_.subspan(sizeof number);
  }
  void operator()(std::string& text) {
    text.resize(Count(1));
    for (char& letter : text) (*this)(letter);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    if constexpr (PlainNumber<T>) {
      list.resize(Count(sizeof(T)));
      if (list.empty()) return;
      std::memcpy(list.data(), bytes_.data(), list.size() * sizeof(T));
      bytes_ = bytes_.subspan(list.size() * sizeof(T));
    } else {
      // Elements are added as they are read: one takes more memory than its least bytes here.
      for (size_t count = Count(1); count > 0 && good_; --count) (*this)(list.emplace_back());
    }
  }
  template <typename First, typename Second>
  void operator()(std::pair<First, Second>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T>
  requires std::is_class_v<T>
  void operator()(T& message) { Fields(*this, message); }

  // All was read, and nothing is left.
  bool IsDone() const { return good_ && bytes_.empty(); }

 private:
  bool Has(size_t count) {
    good_ = good_ && bytes_.size() >= count;
    return good_;
  }
  size_t Count(size_t element_bytes) {
    uint32_t count = 0;
    (*this)(count);
    return Has(size_t{count} * element_bytes) ? count : 0;
  }

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

}  // namespace serve::engine

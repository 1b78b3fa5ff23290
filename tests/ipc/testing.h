// Helpers of the transport's tests: messages with a pattern, a directory per test.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ipc/message.h"

namespace ipc {

inline constexpr int64_t kSecondUs = 1'000'000;

// A message of `bytes` in all whose body follows from `number`.
inline void FillMessage(std::span<std::byte> room, uint32_t number) {
  MessageHeader header;
  header.bytes = static_cast<uint32_t>(room.size());
  header.request = number;
  std::memcpy(room.data(), &header, sizeof header);
  for (size_t i = sizeof header; i < room.size(); ++i) {
    room[i] = static_cast<std::byte>((number * 31 + i) & 0xff);
  }
}

inline bool IsMessage(std::span<const std::byte> message, uint32_t number) {
  MessageHeader header;
  if (message.size() < sizeof header) return false;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.bytes != message.size() || header.request != number) return false;
  for (size_t i = sizeof header; i < message.size(); ++i) {
    if (message[i] != static_cast<std::byte>((number * 31 + i) & 0xff)) return false;
  }
  return true;
}

// Lengths of messages: many small ones, some of the largest.
inline size_t RandomBytes(std::mt19937_64* random) {
  const uint64_t kind = (*random)() % 10;
  const size_t most = kind == 0 ? limits::kMessageBytesMax : kind < 3 ? 4096 : 200;
  return sizeof(MessageHeader) + (*random)() % (most - sizeof(MessageHeader) + 1);
}

class TemporaryDir {
 public:
  TemporaryDir() {
    char name[] = "/tmp/laneway-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryDir() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ipc

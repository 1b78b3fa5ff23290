// Bearer keys (RFC 6750, section 2.1) that clients have to name.
//
// The file has one key a line; empty lines and lines that begin with '#' are none. Only its owner
// may read it. Thread safety: const methods from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::http {

class ApiKeys {
 public:
  // Without keys every client is let in.
  ApiKeys() = default;
  // A failure is a sentence with what to do. Refused: an unreadable file, a file that others may
  // read, a file without keys, and a key with characters that no header can carry.
  static absl::StatusOr<ApiKeys> OfFile(const std::string& path);
  static absl::StatusOr<ApiKeys> OfTextUntrusted(std::string_view text);

  bool empty() const { return keys_.empty(); }
  // `authorization` is the header's value, or empty. The time that this takes depends on lengths
  // alone, so that a client cannot guess a key byte by byte.
  bool Admits(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace serve::http

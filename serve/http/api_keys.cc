#include "serve/http/api_keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/loop/descriptor.h"

namespace serve::http {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;

bool SameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differ = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned>(static_cast<uint8_t>(a[i]) ^ static_cast<uint8_t>(b[i]));
  return differ == 0;
}

bool IsVisible(std::string_view text) {
  for (const char c : text)
    if (c <= ' ' || c > '~') return false;
  return true;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

absl::StatusOr<ApiKeys> ApiKeys::OfFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0)
    return absl::NotFoundError(absl::StrCat("cannot read the keys in ", path, ": ",
                                            std::strerror(errno), "; name another file"));
  if (!S_ISREG(facts.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file; name a file of keys"));
  if ((facts.st_mode & 077) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat("others may use the keys in ", path, "; run chmod 600 ", path));
  std::string text(kFileBytesMax + 1, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size(); size += static_cast<size_t>(got)) {
    got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0)
      return absl::InternalError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  text.resize(size);
  absl::StatusOr<ApiKeys> keys = OfTextUntrusted(text);
  if (!keys.ok()) return absl::InvalidArgumentError(absl::StrCat(path, keys.status().message()));
  return keys;
}

absl::StatusOr<ApiKeys> ApiKeys::OfTextUntrusted(std::string_view text) {
  if (text.size() > kFileBytesMax)
    return absl::InvalidArgumentError(" is over 64 KiB; it should have one key a line");
  ApiKeys keys;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!IsVisible(line))
      return absl::InvalidArgumentError(
          " holds a key with a space or a character outside ASCII; no header can carry it");
    keys.keys_.emplace_back(line);
  }
  if (keys.empty())
    return absl::InvalidArgumentError(" holds no key; write one key a line, or leave the file out");
  return keys;
}

bool ApiKeys::Admits(std::string_view authorization) const {
  if (keys_.empty()) return true;
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() < kScheme.size() ||
      !absl::EqualsIgnoreCase({authorization.data(), kScheme.size()}, "Bearer "))
    return false;
  const std::string_view given = Trimmed(authorization.substr(kScheme.size()));
  bool admits = false;
  for (const std::string& key : keys_) admits |= SameBytes(given, key);
  return admits;
}

}  // namespace serve::http

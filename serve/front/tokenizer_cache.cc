#include "serve/front/tokenizer_cache.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"

namespace serve::front {
namespace {

constexpr size_t kHashBytes = 32;
constexpr int kAttemptsMax = 100;  // a directory goes while it is opened

absl::Status Failed(const std::string& path) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(error),
                                             is_full ? "; make room there" : ""));
}

bool OwnedByUs(const struct stat& s) {
  return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

absl::Status Gone(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, " is removed again and again; try again"));
}

// Makes a directory of the user's own. NotFound: a server has removed it meanwhile. Refused: what
// is there already, and others may write it.
absl::Status MakeOwn(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed(path);
  struct stat s;
  if (lstat(path.c_str(), &s) != 0) return Gone(path);
  if (S_ISDIR(s.st_mode) && OwnedByUs(s)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is no directory that only you may write; remove it, or chmod go-w it"));
}

// Each text after its length, so that texts cut elsewhere do not give the same bytes.
std::string NameOf(const TokenizerFiles& files) {
  std::string all;
  for (const std::string& text :
       {files.tokenizer_json, files.tokenizer_config_json, files.config_json})
    absl::StrAppend(&all, text.size(), "\n", text);
  unsigned char hash[kHashBytes];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(all.data()),
                     all.size(), nullptr, 0);
  char name[2 * kHashBytes + 1];
  return sodium_bin2hex(name, sizeof name, hash, sizeof hash);
}

bool IsName(std::string_view name) {
  return name.size() == 2 * kHashBytes &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Descriptor OpenDirectory(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

// True when the path still leads to this directory. Another server may have removed the directory
// before this one had its lock.
bool IsAt(const Descriptor& directory, const std::string& path) {
  struct stat held, named;
  return fstat(directory.get(), &held) == 0 && lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// The directory under its lock. Another server may remove it until the lock is there: then it is
// made again.
absl::StatusOr<Descriptor> Hold(const std::string& path) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const absl::Status made = MakeOwn(path);
    if (absl::IsNotFound(made)) continue;
    if (!made.ok()) return made;
    Descriptor directory = OpenDirectory(path);
    if (!directory.valid() && errno != ENOENT) return Failed(path);
    if (!directory.valid()) continue;
    // Without locks, as on some network drives, the directory is shared all the same.
    while (flock(directory.get(), LOCK_SH) != 0 && errno == EINTR) continue;
    if (IsAt(directory, path)) return directory;
  }
  return Gone(path);
}

bool Has(const Descriptor& directory, const char* name, const std::string& text) {
  const Descriptor file(
      openat(directory.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat s;
  if (!file.valid() || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !OwnedByUs(s) ||
      static_cast<size_t>(s.st_size) != text.size())
    return false;
  std::string found(text.size(), '\0');
  size_t done = 0;
  for (ssize_t got = 1; got > 0 && done < found.size(); done += static_cast<size_t>(got)) {
    got = read(file.get(), found.data() + done, found.size() - done);
    if (got < 0) return false;
  }
  return done == text.size() && found == text;
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Replaces the file as a whole.
bool Write(const Descriptor& directory, const char* name, const std::string& text) {
  const std::string fresh = absl::StrCat(name, ".", gettid(), ".new");
  const int at = directory.get();
  Descriptor file(
      openat(at, fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.valid() && WriteAll(file.get(), text) && renameat(at, fresh.c_str(), at, name) == 0)
    return true;
  const int error = errno;
  unlinkat(at, fresh.c_str(), 0);
  errno = error;
  return false;
}

std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error))
    entries.push_back(at->path());
  return entries;
}

// Does nothing while a server holds it. What is not a file stays, and so does the directory then.
void Remove(const std::string& path) {
  const Descriptor directory = OpenDirectory(path);
  if (!directory.valid() || flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return;
  // Another server may have removed this directory before the lock, and a third server made a new
  // one.
  if (!IsAt(directory, path)) return;
  for (const std::filesystem::path& file : EntriesOf(path)) unlink(file.c_str());
  rmdir(path.c_str());
}

// Of what other models' servers have left, the newest stay.
void Trim(const std::string& cache) {
  std::vector<std::tuple<int64_t, int64_t, std::filesystem::path>> kept;
  for (const std::filesystem::path& entry : EntriesOf(cache)) {
    struct stat s;
    if (!IsName(entry.filename().string()) || lstat(entry.c_str(), &s) != 0) continue;
    kept.emplace_back(s.st_mtim.tv_sec, s.st_mtim.tv_nsec, entry);
  }
  std::sort(kept.rbegin(), kept.rend());
  for (size_t i = kTokenizersMax; i < kept.size(); ++i) Remove(std::get<2>(kept[i]));
}

}  // namespace

absl::StatusOr<std::string> TokenizerCacheDirectory() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string path;
  if (cache != nullptr && *cache == '/') {
    path = cache;
  } else if (home != nullptr && *home == '/') {
    path = absl::StrCat(home, "/.cache");
  } else {
    return absl::FailedPreconditionError("set HOME or XDG_CACHE_HOME to a directory of your own");
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed(path);
  for (const char* const part : {"/laneway", "/tokenizers"}) {
    path += part;
    if (const absl::Status made = MakeOwn(path); !made.ok()) return made;
  }
  return path;
}

absl::StatusOr<KeptTokenizer> KeepTokenizer(const std::string& cache, const TokenizerFiles& files) {
  const std::string path = absl::StrCat(cache, "/", NameOf(files));
  absl::StatusOr<Descriptor> directory = Hold(path);
  if (!directory.ok()) return directory.status();
  const std::pair<const char*, const std::string*> texts[] = {
      {"tokenizer.json", &files.tokenizer_json},
      {"tokenizer_config.json", &files.tokenizer_config_json},
      {"config.json", &files.config_json}};
  for (const auto& [name, text] : texts) {
    if (Has(*directory, name, *text) || Write(*directory, name, *text)) continue;
    const absl::Status failed = Failed(absl::StrCat(path, "/", name));
    directory->Reset();
    Remove(path);
    return failed;
  }
  futimens(directory->get(), nullptr);  // it is the newest now
  Trim(cache);
  return KeptTokenizer(path, *std::move(directory));
}

}  // namespace serve::front

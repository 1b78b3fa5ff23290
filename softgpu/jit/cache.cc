#include "softgpu/jit/cache.h"

#include <cpuid.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <sodium.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softgpu::jit {
namespace {

constexpr uint64_t kMagic = 0x3130'6a74'6977'6e6cull;  // changes with what a file holds
constexpr uint64_t kFileBytesMax = 64ull << 20, kCacheBytesMax = 256ull << 20;

template <class T>
void Append(std::string* text, const T& value) {
  text->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Each list follows its length, so that no two programs give the same bytes.
void AppendProgram(std::string* text, const Program& program) {
  Append(text, program.constants_begin);
  Append(text, program.linear);
  Append(text, program.code.size());
  for (const ProgramInst& i : program.code) {
    Append(text, i.step);
    Append(text, i.guarded);
    for (uint32_t field : {i.key, i.d, i.a, i.b, i.c, i.e, i.guard, i.aux, i.target})
      Append(text, field);
    Append(text, i.imm);
  }
  Append(text, program.constants.size());
  for (const ProgramConstant& constant : program.constants) {
    Append(text, constant.offset);
    Append(text, constant.bytes);
    Append(text, constant.bits);
    Append(text, constant.known);
  }
  Append(text, program.tables.size());
  for (const std::vector<uint32_t>& table : program.tables) {
    Append(text, table.size());
    for (uint32_t target : table) Append(text, target);
  }
}

void AppendProcessor(std::string* text) {
  for (const auto& [leaf, part] : {std::pair{1u, 0u}, std::pair{7u, 0u}, std::pair{7u, 1u}}) {
    uint32_t r[4] = {};
    __get_cpuid_count(leaf, part, &r[0], &r[1], &r[2], &r[3]);
    if (leaf == 1) r[1] = 0;  // the number of the core that answers
    for (uint32_t word : r) Append(text, word);
  }
}

bool OwnedByUs(const struct stat& s) {
  return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Creates a directory of the user's own; false when what is there is anybody else's.
bool OwnDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat s;
  return lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && OwnedByUs(s);
}

bool ReadAll(int fd, std::string* content) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || !OwnedByUs(s)) return false;
  if (static_cast<uint64_t>(s.st_size) > kFileBytesMax) return false;
  content->resize(static_cast<size_t>(s.st_size));
  size_t have = 0;
  while (have < content->size()) {
    const ssize_t n = read(fd, content->data() + have, content->size() - have);
    if (n <= 0) return false;
    have += static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const std::string& content) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = write(fd, content.data() + done, content.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// Removes the oldest files until the rest fits.
void Trim(const std::string& directory) {
  struct File {
    int64_t age;
    uint64_t bytes;
    std::string path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  DIR* const list = opendir(directory.c_str());
  if (list == nullptr) return;
  while (const dirent* entry = readdir(list)) {
    struct stat s;
    const std::string path = directory + "/" + entry->d_name;
    if (lstat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    files.push_back({s.st_mtim.tv_sec, static_cast<uint64_t>(s.st_size), path});
    total += files.back().bytes;
  }
  closedir(list);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.age < b.age; });
  for (const File& file : files) {
    if (total <= kCacheBytesMax) return;
    unlink(file.path.c_str());
    total -= file.bytes;
  }
}

}  // namespace

std::string CacheName(const Program& program, const std::string& compiler) {
  std::string text;
  Append(&text, kMagic);
  AppendProgram(&text, program);
  AppendProcessor(&text);
  struct stat s = {};
  if (stat(compiler.c_str(), &s) == 0) {
    Append(&text, s.st_size);
    Append(&text, s.st_mtim.tv_sec);
    Append(&text, s.st_mtim.tv_nsec);
  }
  unsigned char hash[32];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
  char name[2 * sizeof hash + 1];
  sodium_bin2hex(name, sizeof name, hash, sizeof hash);
  return name;
}

std::string CacheDirectory() {
  std::string base;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && cache[0] == '/') {
    base = cache;
  } else if (home != nullptr && home[0] == '/') {
    base = std::string(home) + "/.cache";
  } else {
    return "";
  }
  mkdir(base.c_str(), 0700);
  if (!OwnDirectory(base + "/laneway") || !OwnDirectory(base + "/laneway/softgpu")) return "";
  return base + "/laneway/softgpu";
}

bool LoadCached(const std::string& directory, const std::string& name, Compiled* out) {
  const int fd =
      open((directory + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  std::string content;
  const bool read = ReadAll(fd, &content);
  close(fd);
  uint64_t head[3];  // magic, checksum of the rest, number of entries
  if (!read || content.size() < sizeof head) return false;
  std::memcpy(head, content.data(), sizeof head);
  if (head[0] != kMagic || head[1] != XXH3_64bits(content.data() + 16, content.size() - 16))
    return false;
  const uint64_t room = content.size() - sizeof head;
  if (head[2] > room / sizeof(uint32_t)) return false;
  for (uint64_t n = 0; n < head[2]; ++n) {
    uint32_t entry = 0;
    std::memcpy(&entry, content.data() + sizeof head + n * sizeof entry, sizeof entry);
    out->entries.push_back(entry);
  }
  out->object = content.substr(sizeof head + head[2] * sizeof(uint32_t));
  return true;
}

void StoreCached(const std::string& directory, const std::string& name, const Compiled& compiled) {
  std::string content(16, '\0');
  Append(&content, static_cast<uint64_t>(compiled.entries.size()));
  for (uint32_t entry : compiled.entries) Append(&content, entry);
  content += compiled.object;
  const uint64_t sum = XXH3_64bits(content.data() + 16, content.size() - 16);
  std::memcpy(content.data(), &kMagic, 8);
  std::memcpy(content.data() + 8, &sum, 8);
  static std::atomic<uint64_t> number{0};
  const std::string temporary = directory + "/." + name + "." + std::to_string(getpid()) + "." +
                                std::to_string(number.fetch_add(1));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool written = WriteAll(fd, content);
  close(fd);
  if (!written || rename(temporary.c_str(), (directory + "/" + name).c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  Trim(directory);
}

}  // namespace softgpu::jit

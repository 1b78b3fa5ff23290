#include "shim/own_mappings.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string>

namespace shim {
namespace {

// Takes a number, and the one byte `after` behind it, off the front of `text`.
bool TakeNumber(std::string_view* text, int base, char after, uint64_t* value) {
  const std::from_chars_result read =
      std::from_chars(text->data(), text->data() + text->size(), *value, base);
  if (read.ec != std::errc() || read.ptr == text->data() + text->size() || *read.ptr != after)
    return false;
  text->remove_prefix(static_cast<size_t>(read.ptr - text->data()) + 1);
  return true;
}

Mapping::Kind KindOf(char sharing, std::string_view name) {
  if (name == "[stack]") return Mapping::Kind::kStack;
  const bool special = (name.starts_with('[') && name != "[heap]" && !name.starts_with("[anon:")) ||
                       name.starts_with("/anon_hugepage") ||
                       (name.starts_with("/dev/") && !name.starts_with("/dev/zero") &&
                        !name.starts_with("/dev/shm/"));
  if (special) return Mapping::Kind::kSpecial;
  return sharing == 'p' ? Mapping::Kind::kPrivate : Mapping::Kind::kShared;
}

}  // namespace

// BEGIN-END PERMS OFFSET MAJOR:MINOR INODE    NAME
std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  if (!TakeNumber(&line, 16, '-', &mapping.begin) || !TakeNumber(&line, 16, ' ', &mapping.end) ||
      mapping.begin >= mapping.end || line.size() < 5 || line[4] != ' ') {
    return std::nullopt;
  }
  const std::string_view permissions = line.substr(0, 4);
  line.remove_prefix(5);
  uint64_t major = 0, minor = 0;
  if (!TakeNumber(&line, 16, ' ', &mapping.offset) || !TakeNumber(&line, 16, ':', &major) ||
      !TakeNumber(&line, 16, ' ', &minor)) {
    return std::nullopt;
  }
  const std::string rest(line.substr(0, line.find(' '))), ended = rest + ' ';
  std::string_view inode = ended;
  if (!TakeNumber(&inode, 10, ' ', &mapping.inode)) return std::nullopt;
  line.remove_prefix(rest.size());
  const size_t name = line.find_first_not_of(' ');
  mapping.read_write = permissions.starts_with("rw");
  mapping.kind = KindOf(permissions[3], name == std::string_view::npos ? "" : line.substr(name));
  return mapping;
}

std::vector<Mapping> MappingsWithin(uint64_t begin, uint64_t end) {
  std::vector<Mapping> found;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return found;
  std::string text;
  char block[1 << 14];
  bool beyond = false;
  ssize_t got = 0;
  while (!beyond && (got = read(fd, block, sizeof block)) > 0) {
    text.append(block, static_cast<size_t>(got));
    size_t start = 0;
    for (size_t stop = 0; !beyond && (stop = text.find('\n', start)) != std::string::npos;
         start = stop + 1) {
      const std::optional<Mapping> mapping =
          ParseMapping(std::string_view(text).substr(start, stop - start));
      if (!mapping.has_value()) continue;
      beyond = mapping->begin >= end;
      if (!beyond && mapping->end > begin) found.push_back(*mapping);
    }
    text.erase(0, start);
  }
  close(fd);
  return found;
}

std::optional<std::string_view> WhyFixed(const std::vector<Mapping>& mappings, uint64_t begin,
                                         uint64_t end, uint64_t own_stack) {
  uint64_t covered = begin;
  for (const Mapping& mapping : mappings) {
    if (mapping.begin > covered) break;
    if (mapping.kind == Mapping::Kind::kShared)
      return "is shared with other processes or lies in pages that are registered already";
    if (mapping.kind == Mapping::Kind::kSpecial)
      return "consists of pages that can't be exchanged (huge pages, or a device's)";
    if (mapping.kind == Mapping::Kind::kStack ||
        (own_stack >= mapping.begin && own_stack < mapping.end))
      return "lies on a stack";
    if (!mapping.read_write) return "can't be read and written";
    covered = mapping.end;
  }
  if (covered < end) return "isn't all there";
  return std::nullopt;
}

}  // namespace shim

#include "functions/store.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/function_file.h"
#include "ipc/calls/limits.h"
#include "ipc/state_dir.h"

namespace functions {
namespace {

constexpr size_t kStoredNameBytesMax = 48;
constexpr size_t kManifestFileBytesMax = 1u << 20;

absl::StatusOr<std::string> FunctionsDir() {
  const std::string state = ipc::StateDir();
  if (state.empty())
    return absl::FailedPreconditionError("there is no place for functions; set HOME");
  return absl::StrCat(state, "/functions");
}

absl::StatusOr<std::string> PathOf(const std::string& name, const char* suffix) {
  if (const absl::Status fine = CheckName(name); !fine.ok()) return fine;
  const absl::StatusOr<std::string> dir = FunctionsDir();
  if (!dir.ok()) return dir.status();
  return absl::StrCat(*dir, "/", name, suffix);
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

absl::StatusOr<Manifest> LoadManifest(const std::string& path, const Function& function,
                                      std::string* text) {
  absl::StatusOr<std::string> read = ipc::ReadOwn(path, kManifestFileBytesMax);
  if (!read.ok()) return read.status();
  Manifest manifest;
  std::string why;
  if (!ParseManifestUntrusted(*read, &manifest, &why) || !Fits(manifest, function, &why))
    return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
  *text = *std::move(read);
  return manifest;
}

}  // namespace

absl::Status CheckName(std::string_view name) {
  bool fine =
      !name.empty() && name.size() <= kStoredNameBytesMax && name[0] != '.' && name[0] != '-';
  for (const char letter : name) {
    fine = fine &&
           ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
            (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.');
  }
  if (fine) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a function's name has up to 48 letters, digits, '_', '-' and '.'");
}

absl::StatusOr<std::string> NewRecordingPath() {
  const absl::StatusOr<std::string> dir = FunctionsDir();
  if (!dir.ok()) return dir.status();
  return absl::StrCat(*dir, "/.recording-", getpid());
}

absl::StatusOr<Function> LoadFile(const std::string& path) {
  const absl::StatusOr<std::string> file = ipc::ReadOwn(path, ipc::limits::kFunctionFileBytesMax);
  if (!file.ok()) return file.status();
  Function function;
  std::string why;
  if (!DecodeFunctionUntrusted(BytesOf(*file), &function, &why))
    return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
  return function;
}

absl::StatusOr<Stored> Load(const std::string& name) {
  const absl::StatusOr<std::string> path = PathOf(name, ".function");
  const absl::StatusOr<std::string> manifest_path = PathOf(name, ".json");
  if (!path.ok()) return path.status();
  absl::StatusOr<Function> function = LoadFile(*path);
  if (absl::IsNotFound(function.status()))
    return absl::NotFoundError(absl::StrCat("there is no function ", name,
                                            "; laneway record --name ", name, " makes one"));
  if (!function.ok()) return function.status();
  std::string text;
  absl::StatusOr<Manifest> manifest = LoadManifest(*manifest_path, *function, &text);
  if (absl::IsNotFound(manifest.status()))
    return absl::NotFoundError(
        absl::StrCat(*manifest_path, " is missing; record ", name, " again"));
  if (!manifest.ok()) return manifest.status();
  return Stored{*std::move(function), *std::move(manifest)};
}

absl::StatusOr<std::string> LoadManifestText(const std::string& name) {
  if (const absl::StatusOr<Stored> stored = Load(name); !stored.ok()) return stored.status();
  return ipc::ReadOwn(*PathOf(name, ".json"), kManifestFileBytesMax);
}

absl::Status Keep(const std::string& recording, const std::string& name) {
  const absl::StatusOr<std::string> path = PathOf(name, ".function");
  if (!path.ok()) return path.status();
  const absl::StatusOr<Function> function = LoadFile(recording);
  if (!function.ok()) return function.status();
  const absl::Status written =
      ipc::WriteWhole(*PathOf(name, ".json"), JsonOf(FirstManifest(*function)));
  if (!written.ok()) return written;
  if (rename(recording.c_str(), path->c_str()) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", *path, ": ", std::strerror(errno)));
  return absl::OkStatus();
}

void KeepReason(const std::string& recording, const std::string& why) {
  (void)ipc::WriteWhole(absl::StrCat(recording, ".why"), why).ok();
}

void DropReason(const std::string& recording) {
  (void)unlink(absl::StrCat(recording, ".why").c_str());
}

void Drop(const std::string& recording) {
  (void)unlink(recording.c_str());
  DropReason(recording);
}

std::string SocketPath(const std::string& dir, const std::string& name) {
  return absl::StrCat(dir, "/function-", name, ".sock");
}

std::string ServeLockPath(const std::string& dir, const std::string& name) {
  return absl::StrCat(dir, "/function-", name, ".lock");
}

}  // namespace functions

// Where recorded functions lie: functions/NAME.function and functions/NAME.json in the state
// directory (ipc/state_dir.h), mode 0700. Files of other users, and symbolic links, are not read.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "functions/function.h"
#include "functions/manifest.h"

namespace functions {

// Letters, digits, '_', '-' and '.', up to 48, and no '.' or '-' at the begin.
absl::Status CheckName(std::string_view name);

// The name of a new file beside the functions, for a recording that is under way.
absl::StatusOr<std::string> NewRecordingPath();

// Both or a sentence: no such function, another user's file, damage, a manifest that does not fit.
struct Stored {
  Function function;
  Manifest manifest;
};
absl::StatusOr<Stored> Load(const std::string& name);
// The function alone, of a file.
absl::StatusOr<Function> LoadFile(const std::string& path);
// The manifest's text, checked against the function.
absl::StatusOr<std::string> LoadManifestText(const std::string& name);

// Gives the recording its name, with its first manifest. A function of that name is replaced.
absl::Status Keep(const std::string& recording, const std::string& name);
// A sentence beside the recording, for `laneway record`: why it is no function.
void KeepReason(const std::string& recording, const std::string& why);
void DropReason(const std::string& recording);
// Removes what a recording left.
void Drop(const std::string& recording);

// Where `laneway serve` listens for a function in the runtime directory `dir`, and the file that it
// locks meanwhile.
std::string SocketPath(const std::string& dir, const std::string& name);
std::string ServeLockPath(const std::string& dir, const std::string& name);

}  // namespace functions

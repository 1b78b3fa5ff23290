#include "cli/record.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/run.h"
#include "functions/store.h"
#include "ipc/install.h"
#include "ipc/state_dir.h"

namespace cli {
namespace {

constexpr size_t kReasonBytesMax = 4096;

std::string FunctionProgram() { return ipc::BinaryPath("laneway-function"); }

int Refuse(const std::string& name, const std::string& why) {
  return Say(1, absl::StrCat(name, " is not recorded: ", why));
}

int Show(const std::string& name) {
  const absl::StatusOr<std::string> manifest = functions::LoadManifestText(name);
  if (!manifest.ok()) return Say(1, std::string(manifest.status().message()));
  std::fputs(manifest->c_str(), stdout);
  return 0;
}

// The sentence of the client, or of the verified function, about the recording.
std::string ReasonOf(const std::string& recording, const char* otherwise) {
  const absl::StatusOr<std::string> said =
      ipc::ReadBounded(absl::StrCat(recording, ".why"), kReasonBytesMax);
  return said.ok() ? *said : otherwise;
}

// Removes what is left of a recording, however it ends.
class Recording {
 public:
  explicit Recording(std::string path) : path_(std::move(path)) { functions::Drop(path_); }
  ~Recording() { functions::Drop(path_); }
  Recording(const Recording&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

int RecordProgram(const Request& request, const Recording& recording) {
  const int code = Run(request.options, request.program, recording.path());
  if (code != 0)
    return Say(code, absl::StrCat("the program failed (exit code ", code, "), so that ",
                                  request.name, " is not recorded"));
  if (access(recording.path().c_str(), F_OK) != 0)
    return Refuse(request.name,
                  ReasonOf(recording.path(), "the program made no call of CUDA that Laneway saw"));
  functions::DropReason(recording.path());
  if (Run(request.options, {FunctionProgram(), "verify", recording.path()}) != 0)
    return Refuse(request.name, ReasonOf(recording.path(), "it cannot be run without its program"));
  const absl::Status kept = functions::Keep(recording.path(), request.name);
  if (!kept.ok()) return Refuse(request.name, std::string(kept.message()));
  std::fprintf(stderr, "laneway: recorded %s; laneway record --show %s lists inputs and outputs\n",
               request.name.c_str(), request.name.c_str());
  return 0;
}

}  // namespace

int Record(const Request& request) {
  if (!request.function.show.empty()) return Show(request.function.show);
  if (request.name.empty() || request.program.empty())
    return Say(2, "record what? laneway record --name NAME -- PROGRAM [ARGUMENTS]");
  if (const absl::Status fine = functions::CheckName(request.name); !fine.ok())
    return Say(2, std::string(fine.message()));
  if (request.options.mode == "in-process" || request.options.transport != "ring")
    return Say(2, "functions are recorded with --mode=shared or contained and --transport=ring");
  const absl::StatusOr<std::string> path = functions::NewRecordingPath();
  if (!path.ok()) return Say(1, std::string(path.status().message()));
  return RecordProgram(request, Recording(*path));
}

}  // namespace cli

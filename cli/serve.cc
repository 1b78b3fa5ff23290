#include "cli/serve.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/run.h"
#include "functions/store.h"
#include "ipc/install.h"
#include "ipc/runtime_dir.h"
#include "ipc/unique_fd.h"

namespace cli {
namespace {

// A model is named by where it is. A name without a slash is a function's, even where a file is
// called so, unless it is that of a .gguf file or of a model's directory.
bool IsModel(const std::string& target) {
  return target.find('/') != std::string::npos || target.ends_with(".gguf") ||
         access(absl::StrCat(target, "/config.json").c_str(), F_OK) == 0;
}

int ServeFunction(const Request& request, const std::string& name) {
  const absl::StatusOr<functions::Stored> stored = functions::Load(name);
  if (!stored.ok()) return Say(1, std::string(stored.status().message()));
  const std::string dir = DirOf(request);
  if (const absl::Status made = ipc::MakeRuntimeDir(dir); !made.ok())
    return Say(1, std::string(made.message()));
  const std::string lock_path = functions::ServeLockPath(dir, name);
  // The server inherits the lock, and so holds it when this process is gone.
  const ipc::UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (!lock.valid()) return Say(1, absl::StrCat("cannot write ", lock_path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Say(1, absl::StrCat(name, " is served already; laneway call ", name, " asks that one"));
  return Run(request.options, {ipc::BinaryPath("laneway-function"), "serve", name,
                               functions::SocketPath(dir, name)});
}

int ServeModels(const Request& request) {
  std::vector<std::string> words = {ipc::BinaryPath("laneway-serve")};
  for (const std::string& word : serve::llm::WordsOf(request.function.models))
    words.push_back(word);
  words.insert(words.end(), request.function.targets.begin(), request.function.targets.end());
  return Run(request.options, words);
}

}  // namespace

int Serve(const Request& request) {
  const std::vector<std::string>& targets = request.function.targets;
  if (std::all_of(targets.begin(), targets.end(), IsModel)) return ServeModels(request);
  if (targets.size() != 1)
    return Say(2,
               "serve one recorded function, or models by their paths: two kinds have no port "
               "in common");
  if (!serve::llm::WordsOf(request.function.models).empty())
    return Say(2, absl::StrCat(serve::llm::WordsOf(request.function.models).front(),
                               " is for models; ", targets[0], " is no path of one"));
  return ServeFunction(request, targets[0]);
}

}  // namespace cli

// Directories from which clients load the tokenizers of models that have none of their own.
//
// They are below $XDG_CACHE_HOME/laneway/tokenizers (or ~/.cache/...), its owner's alone. A
// directory is called by a hash (BLAKE2b-256) of its files. Servers of one model therefore share a
// directory, and servers of different models have different ones. Files appear by renaming: clients
// see whole ones. A server holds a shared lock (flock) on its directory. When there are too many
// directories, the oldest ones go, unless a server holds them.
//
// Thread safety: functions without state, safe from any thread and process.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "serve/loop/descriptor.h"

namespace serve::front {

inline constexpr size_t kTokenizersMax = 8;

struct TokenizerFiles {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string config_json;  // the model's sizes: transformers looks for them, too
};

// Stays on the disk for as long as this lives, and usually longer.
class KeptTokenizer {
 public:
  KeptTokenizer(std::string directory, Descriptor held)
      : directory_(std::move(directory)), held_(std::move(held)) {}
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  Descriptor held_;
};

// Where they are kept: made if it is missing. A failure is a sentence with what to do.
absl::StatusOr<std::string> TokenizerCacheDirectory();

// Writes what is not in `cache` yet. A failure is a sentence: the disk is full, or the directory is
// another user's or not to be written.
absl::StatusOr<KeptTokenizer> KeepTokenizer(const std::string& cache, const TokenizerFiles& files);

}  // namespace serve::front

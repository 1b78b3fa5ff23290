// Prints the tokenizer.json that is written for the tokenizer of a model's file:
// `write_tokenizer FILE.gguf`, for a test that reads it in another language.
#include <cstdio>
#include <string>

#include "serve/llm/format/mapped_file.h"
#include "serve/llm/text/tokenizer_json_writer.h"

namespace {

absl::StatusOr<std::string> Write(const std::string& path) {
  const absl::StatusOr<serve::llm::MappedFile> file = serve::llm::MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<serve::llm::Gguf> gguf = serve::llm::DecodeGgufUntrusted(file->bytes());
  if (!gguf.ok()) return gguf.status();
  const absl::StatusOr<serve::llm::TokenizerParts> parts = serve::llm::TokenizerPartsOfGguf(*gguf);
  if (!parts.ok()) return parts.status();
  return serve::llm::TokenizerJson(*parts);
}

int Main(const char* path) {
  const absl::StatusOr<std::string> written = Write(path);
  if (!written.ok()) {
    std::fprintf(stderr, "%s\n", std::string(written.status().message()).c_str());
    return 1;
  }
  std::fputs(written->c_str(), stdout);
  return 0;
}

}  // namespace

int main(int count, char** words) { return count == 2 ? Main(words[1]) : 2; }

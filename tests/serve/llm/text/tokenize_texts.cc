// Tokenizes texts for a test in another language: `tokenize_texts FILE.gguf` reads a text in JSON
// from each line of standard input, and prints {"tokens": [...], "text": "..."} for each: the text
// is what a Detokenizer makes of the tokens.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/llm/format/mapped_file.h"
#include "serve/llm/text/detokenizer.h"
#include "serve/llm/text/tokenizer.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

int Main(const char* path) {
  const absl::StatusOr<serve::llm::MappedFile> file = serve::llm::MappedFile::Open(path);
  if (!file.ok()) return Fail(file.status());
  const absl::StatusOr<serve::llm::Gguf> gguf = serve::llm::DecodeGgufUntrusted(file->bytes());
  if (!gguf.ok()) return Fail(gguf.status());
  const absl::StatusOr<serve::llm::Tokenizer> tokenizer = serve::llm::Tokenizer::OfGguf(*gguf);
  if (!tokenizer.ok()) return Fail(tokenizer.status());
  for (std::string line; std::getline(std::cin, line);) {
    const std::string text = nlohmann::json::parse(line).get<std::string>();
    const absl::StatusOr<std::vector<int32_t>> tokens =
        tokenizer->Encode(text, serve::llm::ControlTokens::kParsed);
    if (!tokens.ok()) return Fail(tokens.status());
    serve::llm::Detokenizer detokenizer;
    std::string back;
    for (const int32_t token : *tokens) back += detokenizer.Add(tokenizer->BytesOf(token));
    back += detokenizer.Flush();
    std::printf("%s\n", nlohmann::json{{"tokens", *tokens}, {"text", back}}.dump().c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? Main(argv[1]) : 2; }

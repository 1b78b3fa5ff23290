// Tokenizes texts for a test in another language: `tokenize_texts FILE`, a .gguf or a
// tokenizer.json, reads a text in JSON
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

absl::StatusOr<serve::llm::Tokenizer> Read(const std::string& path) {
  const absl::StatusOr<serve::llm::MappedFile> file = serve::llm::MappedFile::Open(path);
  if (!file.ok()) return file.status();
  if (path.find(".json") != path.npos)
    return serve::llm::Tokenizer::OfJsonUntrusted(
        {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  const absl::StatusOr<serve::llm::Gguf> gguf = serve::llm::DecodeGgufUntrusted(file->bytes());
  if (!gguf.ok()) return gguf.status();
  return serve::llm::Tokenizer::OfGguf(*gguf);
}

int Main(const char* path) {
  const absl::StatusOr<serve::llm::Tokenizer> tokenizer = Read(path);
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
    if (tokenizer->drops_first_space() && back.substr(0, 1) == " ") back.erase(0, 1);
    std::printf("%s\n", nlohmann::json{{"tokens", *tokens}, {"text", back}}.dump().c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? Main(argv[1]) : 2; }

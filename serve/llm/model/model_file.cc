#include "serve/llm/model/model_file.h"

#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/model/tensor_files.h"

namespace serve::llm {
namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr size_t kTokenizerConfigBytesMax = size_t{16} << 20;

struct SideFile {
  const char* name;
  std::string_view DirectoryTexts::*text;
  size_t bytes_max;
};
constexpr SideFile kSideFiles[] = {
    {"config.json", &DirectoryTexts::config, kConfigBytesMax},
    {"tokenizer.json", &DirectoryTexts::tokenizer, kJsonBytesMax},
    {"tokenizer_config.json", &DirectoryTexts::tokenizer_config, kTokenizerConfigBytesMax},
    {"generation_config.json", &DirectoryTexts::generation_config, kConfigBytesMax},
    {"chat_template.jinja", &DirectoryTexts::chat_template, kChatTemplateBytesMax},
};

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The last part of the path without links: "." and "a/" have none of their own.
std::string NameOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  return error ? path : whole.filename().string();
}

// Maps the files that are there.
absl::Status ReadSideFiles(const std::string& directory, std::vector<MappedFile>* files,
                           DirectoryTexts* texts) {
  for (const SideFile& side : kSideFiles) {
    const std::string path = absl::StrCat(directory, "/", side.name);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    if (!file.ok()) return file.status();
    if (file->bytes().size() > side.bytes_max)
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is over ", side.bytes_max >> 20, " MiB, too large for such a file"));
    texts->*side.text = file->text();
    files->push_back(*std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelFile> ModelFile::OpenUntrusted(const std::string& path) {
  if (IsDirectory(path)) return OfDirectory(path);
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<ModelFile> model = OfGguf(*std::move(file));
  if (!model.ok())
    return absl::Status(model.status().code(),
                        absl::StrCat(path, " ", std::string(model.status().message())));
  if (model->model_.name.empty()) model->model_.name = std::filesystem::path(path).stem().string();
  return model;
}

absl::StatusOr<ModelFile> ModelFile::OfGguf(MappedFile file) {
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(file.bytes());
  if (!gguf.ok()) return gguf.status();
  std::vector<MappedFile> files;
  files.push_back(std::move(file));
  return ModelFile(std::move(files), ModelOfGguf(*gguf));
}

absl::StatusOr<TokenizerParts> ModelFile::PartsOfTokenizerUntrusted() const {
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(files_.front().bytes());
  if (!gguf.ok()) return gguf.status();
  return TokenizerPartsOfGguf(*gguf);
}

absl::StatusOr<ModelFile> ModelFile::OfDirectory(const std::string& path) {
  DirectoryTexts texts;
  texts.name = NameOf(path);
  std::vector<MappedFile> side_files;
  if (const absl::Status fine = ReadSideFiles(path, &side_files, &texts); !fine.ok()) return fine;
  if (texts.config.empty())
    return absl::NotFoundError(
        absl::StrCat(path, " has no config.json; name a model's directory or its .gguf file"));
  absl::StatusOr<TensorFiles> tensors = OpenTensorFilesUntrusted(path);
  if (!tensors.ok()) return tensors.status();
  Model model = ModelOfDirectoryUntrusted(texts, std::move(tensors->tensors));
  // The side files are not needed any more: what they say was copied.
  return ModelFile(std::move(tensors->files), std::move(model));
}

}  // namespace serve::llm

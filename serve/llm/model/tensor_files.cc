#include "serve/llm/model/tensor_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/llm/format/json_values.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/format/safetensors.h"
#include "serve/llm/model/model_file.h"

namespace serve::llm {
namespace {

constexpr std::string_view kEnd = ".safetensors";
constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kFileNameBytesMax = 255;

bool IsFileName(std::string_view name) {
  return name.size() > kEnd.size() && name.size() <= kFileNameBytesMax && name.ends_with(kEnd) &&
         name.find('/') == name.npos && name.find('\0') == name.npos && name[0] != '.';
}

absl::Status About(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, " ", std::string(status.message())));
}

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// All files of tensors, in the order of their names.
absl::StatusOr<std::set<std::string>> FilesIn(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (IsFileName(name)) names.insert(name);
    if (names.size() > kModelFilesMax) break;
  }
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot read ", directory, ": ", error.message()));
  return names;
}

absl::StatusOr<TensorIndex> ReadIndex(const std::string& path) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<TensorIndex> index = DecodeTensorIndexUntrusted(file->text());
  if (!index.ok()) return About(path, index.status());
  return index;
}

// Adds the tensors of one file. With an index, each must be named there, and of this file.
absl::Status AddFile(const std::string& directory, const std::string& name,
                     const TensorIndex* index, TensorFiles* out) {
  const std::string path = absl::StrCat(directory, "/", name);
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<TensorSet> tensors = DecodeSafetensorsUntrusted(file->bytes());
  if (!tensors.ok()) return About(path, tensors.status());
  for (const Tensor& tensor : tensors->all()) {
    if (index != nullptr) {
      const auto said = index->find(tensor.name);
      if (said == index->end() || said->second != name)
        return absl::InvalidArgumentError(absl::StrCat(path, " has tensor ", Quoted(tensor.name),
                                                       ", which is not there by ", kIndex,
                                                       "; fetch the directory again"));
    }
    if (!out->tensors.Add(tensor))
      return absl::InvalidArgumentError(absl::StrCat(
          path, " has tensor ", Quoted(tensor.name),
          ", as another file of the directory has; keep the files of one model there"));
  }
  out->files.push_back(*std::move(file));
  return absl::OkStatus();
}

absl::Status CheckAllThere(const std::string& directory, const TensorIndex& index,
                           const TensorSet& tensors) {
  for (const auto& [name, file] : index) {
    if (tensors.Find(name) == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(directory, "/", Quoted(file), " lacks tensor ",
                                                     Quoted(name), "; fetch it again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorIndex> DecodeTensorIndexUntrusted(std::string_view json) {
  if (json.size() > kTensorIndexBytesMax)
    return absl::InvalidArgumentError("is over 16 MiB, too large for an index of tensors");
  const absl::StatusOr<Json> decoded = DecodeJsonUntrusted(json);
  if (!decoded.ok()) return decoded.status();
  const Json* const map = Member(*decoded, "weight_map");
  if (map == nullptr || !map->is_object() || map->empty()) return Damaged("it has no weight_map");
  TensorIndex index;
  for (const auto& [tensor, file] : map->items()) {
    const std::string* const name = file.get_ptr<const std::string*>();
    if (name == nullptr || !IsFileName(*name))
      return Damaged(absl::StrCat("it names no file beside it for tensor ", Quoted(tensor)));
    index.emplace(tensor, *name);
  }
  return index;
}

absl::StatusOr<TensorFiles> OpenTensorFilesUntrusted(const std::string& directory) {
  std::set<std::string> names;
  TensorIndex index;
  const std::string index_path = absl::StrCat(directory, "/", kIndex);
  if (IsThere(absl::StrCat(directory, "/", kWhole))) {
    names = {kWhole};
  } else if (IsThere(index_path)) {
    absl::StatusOr<TensorIndex> read = ReadIndex(index_path);
    if (!read.ok()) return read.status();
    index = *std::move(read);
    for (const auto& [tensor, file] : index) names.insert(file);
  } else {
    absl::StatusOr<std::set<std::string>> found = FilesIn(directory);
    if (!found.ok()) return found.status();
    names = *std::move(found);
  }
  if (names.empty())
    return absl::NotFoundError(
        absl::StrCat(directory, " has no .safetensors file; convert the model to safetensors"));
  if (names.size() > kModelFilesMax)
    return absl::InvalidArgumentError(
        absl::StrCat(directory, " has over ", kModelFilesMax, " .safetensors files"));
  TensorFiles out;
  for (const std::string& name : names) {
    const absl::Status fine = AddFile(directory, name, index.empty() ? nullptr : &index, &out);
    if (!fine.ok()) return fine;
  }
  if (const absl::Status fine = CheckAllThere(directory, index, out.tensors); !fine.ok())
    return fine;
  return out;
}

}  // namespace serve::llm

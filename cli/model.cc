#include "cli/model.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/table.h"
#include "serve/llm/model/model_file.h"

namespace cli {
namespace {

using serve::llm::ModelSizes;
using serve::llm::ModelSummary;
using serve::llm::TypeUse;

constexpr uint64_t kBytesOfFloat = 4;
constexpr uint64_t kBytesOfHalf = 2;

std::string ShownOr(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : Printable(text);
}

void AddSizes(const ModelSizes& sizes, Rows* rows) {
  rows->push_back({"layers", absl::StrCat(sizes.layers)});
  rows->push_back({"width", absl::StrCat(sizes.width, ", feed-forward ", sizes.feed_forward)});
  rows->push_back({"heads", absl::StrCat(sizes.heads, " of ", sizes.head_width,
                                         ", keys and values ", sizes.kv_heads)});
  rows->push_back({"vocabulary", absl::StrCat(sizes.vocabulary)});
  rows->push_back({"context", absl::StrCat(sizes.context, " tokens")});
  rows->push_back(
      {"KV cache", absl::StrCat(sizes.KvBytesOfToken(kBytesOfFloat), " bytes a token in f32, ",
                                sizes.KvBytesOfToken(kBytesOfHalf), " in f16")});
}

void AddText(const serve::llm::ModelText& text, Rows* rows) {
  rows->push_back({"ends", text.ends.empty() ? "-" : absl::StrJoin(text.ends, ", ")});
  rows->push_back({"chat template", text.chat_template.empty()
                                        ? "-"
                                        : absl::StrCat(text.chat_template.size(), " bytes")});
}

nlohmann::json JsonOf(const serve::llm::ModelText& text) {
  return {{"ends", text.ends},
          {"first_token", Printable(text.first_token)},
          {"end_token", Printable(text.end_token)},
          {"chat_template_bytes", text.chat_template.size()}};
}

nlohmann::json JsonOf(const ModelSizes& sizes) {
  return {{"layers", sizes.layers},
          {"width", sizes.width},
          {"feed_forward", sizes.feed_forward},
          {"heads", sizes.heads},
          {"kv_heads", sizes.kv_heads},
          {"head_width", sizes.head_width},
          {"vocabulary", sizes.vocabulary},
          {"context", sizes.context},
          {"kv_bytes_of_token",
           {{"f32", sizes.KvBytesOfToken(kBytesOfFloat)},
            {"f16", sizes.KvBytesOfToken(kBytesOfHalf)}}}};
}

}  // namespace

std::string ModelText(const ModelSummary& model) {
  Rows rows = {{"name", ShownOr(model.name, "-")},
               {"format", model.format},
               {"architecture", ShownOr(model.architecture, "-")},
               {"parameters", absl::StrFormat("%.1f million", model.parameters / 1e6)}};
  if (model.sizes.has_value()) AddSizes(*model.sizes, &rows);
  rows.push_back({"tokenizer", ShownOr(model.tokenizer, "-")});
  if (model.text.has_value()) AddText(*model.text, &rows);
  Rows types = {{"TYPE", "TENSORS", "SIZE"}};
  for (const TypeUse& use : model.types)
    types.push_back({use.type, absl::StrCat(use.tensors), BytesText(use.bytes)});
  std::string text = absl::StrCat(Table(rows, 2), "\n", Table(types, 1));
  if (!model.refusals.empty()) absl::StrAppend(&text, "\nIt would be refused: the model\n");
  for (const std::string& refusal : model.refusals)
    absl::StrAppend(&text, "- ", Printable(refusal), "\n");
  return text;
}

std::string ModelJson(const ModelSummary& model) {
  nlohmann::json object = {{"format", model.format},
                           {"name", Printable(model.name)},
                           {"architecture", Printable(model.architecture)},
                           {"parameters", model.parameters},
                           {"tokenizer", Printable(model.tokenizer)},
                           {"types", nlohmann::json::array()},
                           {"refusals", nlohmann::json::array()}};
  if (model.version != 0) object["version"] = model.version;
  if (model.sizes.has_value()) object["sizes"] = JsonOf(*model.sizes);
  if (model.text.has_value()) object["text"] = JsonOf(*model.text);
  for (const TypeUse& use : model.types)
    object["types"].push_back({{"type", use.type},
                               {"tensors", use.tensors},
                               {"elements", use.elements},
                               {"bytes", use.bytes}});
  for (const std::string& refusal : model.refusals)
    object["refusals"].push_back(Printable(refusal));
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int ShowModel(const Request& request) {
  const absl::StatusOr<serve::llm::ModelFile> file =
      serve::llm::ModelFile::OpenUntrusted(request.path);
  if (!file.ok()) return Say(1, Printable(std::string(file.status().message())));
  const ModelSummary model = serve::llm::Summarise(file->model());
  std::fputs((request.json ? ModelJson(model) : ModelText(model)).c_str(), stdout);
  return model.refusals.empty() ? 0 : 1;
}

}  // namespace cli

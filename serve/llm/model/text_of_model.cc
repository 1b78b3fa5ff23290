#include "serve/llm/model/text_of_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::llm {

absl::StatusOr<ModelText> TextWithEnds(ModelText text, std::vector<uint64_t> ends,
                                       const Tokenizer& tokenizer) {
  if (text.chat_template.size() > kChatTemplateBytesMax)
    return absl::InvalidArgumentError("has a chat template of over 1 MiB, which is not read");
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const uint64_t end : ends) {
    if (end >= tokenizer.size())
      return absl::InvalidArgumentError(
          absl::StrCat("ends its texts with token ", end, ", which is none of its tokens"));
    text.ends.push_back(static_cast<int32_t>(end));
  }
  return text;
}

absl::StatusOr<Tokenizer> FitTokenizer(absl::StatusOr<Tokenizer> tokenizer,
                                       const absl::StatusOr<ModelSizes>& sizes) {
  if (!tokenizer.ok() || !sizes.ok()) return tokenizer;
  if (tokenizer->size() > sizes->vocabulary)
    return absl::InvalidArgumentError(absl::StrCat("has a tokenizer of ", tokenizer->size(),
                                                   " tokens, and layers that know ",
                                                   sizes->vocabulary));
  tokenizer->GrowTo(sizes->vocabulary);
  return tokenizer;
}

}  // namespace serve::llm

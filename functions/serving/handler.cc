#include "functions/serving/handler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/serving/frames.h"

namespace functions {
namespace {

Bytes Refusal(std::string sentence) {
  return EncodeAnswer({AnswerStatus::kRefused, {}, std::move(sentence)});
}

}  // namespace

Handler::Handler(Manifest manifest, Runner* runner)
    : manifest_(std::move(manifest)), json_(JsonOf(manifest_)), runner_(*runner) {}

// An empty sentence: `inputs` has all of them, in the manifest's order.
std::string Handler::WhyNot(const std::vector<TensorView>& tensors,
                            std::vector<std::span<const std::byte>>* inputs) const {
  inputs->resize(manifest_.inputs.size());
  std::vector<bool> given(manifest_.inputs.size());
  for (const TensorView& tensor : tensors) {
    size_t i = 0;
    while (i < given.size() && manifest_.inputs[i].name != tensor.type.name) ++i;
    if (i == given.size())
      return absl::StrCat("there is no input of that name; laneway record --show lists them");
    const TensorType& wanted = manifest_.inputs[i];
    if (given[i]) return absl::StrCat("input ", wanted.name, " is given twice; give it once");
    if (wanted.type != tensor.type.type || wanted.shape != tensor.type.shape) {
      return absl::StrCat("input ", wanted.name, " is ", TextOf(wanted), ", not ",
                          TextOf(tensor.type));
    }
    given[i] = true;
    (*inputs)[i] = tensor.bytes;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) {
      return absl::StrCat("input ", manifest_.inputs[i].name, ", ", TextOf(manifest_.inputs[i]),
                          ", is missing; give it");
    }
  }
  return {};
}

absl::Status Handler::AnswerUntrusted(std::span<const std::byte> body, Bytes* answer) {
  Request request;
  if (!DecodeRequestUntrusted(body, &request)) {
    *answer = Refusal("this is no request; use a client of the same version");
    return absl::OkStatus();
  }
  if (request.kind == RequestKind::kDescribe) {
    const TensorView manifest = {{"manifest", ElementType::kU8, {json_.size()}},
                                 std::as_bytes(std::span(json_))};
    *answer = EncodeAnswer({AnswerStatus::kDone, {manifest}, {}});
    return absl::OkStatus();
  }
  std::vector<std::span<const std::byte>> inputs;
  std::string why = WhyNot(request.tensors, &inputs);
  if (!why.empty()) {
    *answer = Refusal(std::move(why));
    return absl::OkStatus();
  }
  std::vector<Bytes> outputs;
  const absl::Status run = runner_.Run(inputs, &outputs);
  if (!run.ok()) return run;
  Answer done;
  for (size_t i = 0; i < outputs.size(); ++i)
    done.tensors.push_back({manifest_.outputs[i], outputs[i]});
  *answer = EncodeAnswer(done);
  return absl::OkStatus();
}

}  // namespace functions

#include "serve/llm/model/config_rope.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "absl/strings/str_cat.h"
#include "serve/llm/format/refusal.h"

namespace serve::llm {
namespace {

constexpr double kBaseIfUnsaid = 10000;

bool IsSize(double number) { return number > 0 && number < 1e12; }

// Llama 3's scaling: pairs that turn more often than high_freq_factor times in the context of the
// training keep their speed, those that turn less often than low_freq_factor times turn `factor`
// times slower, and between the two speeds are mixed. Source: Meta's description of Llama 3.1, as
// transformers documents it (modeling_rope_utils, "llama3").
struct Llama3Scaling {
  double factor;
  double low;
  double high;
  double context;

  double FactorOf(double turns_a_token) const {
    const double turns = context * turns_a_token;
    if (turns > high) return 1;
    if (turns < low) return factor;
    const double kept = (turns - low) / (high - low);
    return 1 / ((1 - kept) / factor + kept);
  }
};

absl::Status ReadLlama3(const Json& scaling, ModelSizes* sizes) {
  const auto number = [&scaling](const char* name) { return NumberOf(scaling, name).value_or(0); };
  const Llama3Scaling llama3{number("factor"), number("low_freq_factor"),
                             number("high_freq_factor"),
                             number("original_max_position_embeddings")};
  if (!IsSize(llama3.factor) || !IsSize(llama3.low) || !IsSize(llama3.high) ||
      !IsSize(llama3.context) || llama3.low >= llama3.high)
    return absl::InvalidArgumentError(
        "scales its positions (llama3) by numbers that make no sense");
  for (uint64_t i = 0; i < sizes->rope_width / 2; ++i) {
    const double exponent = 2 * static_cast<double>(i) / static_cast<double>(sizes->rope_width);
    const double turns_a_token = 1 / (std::pow(sizes->rope_base, exponent) * 2 * std::numbers::pi);
    sizes->rope_factors.push_back(static_cast<float>(llama3.FactorOf(turns_a_token)));
  }
  return absl::OkStatus();
}

// Null: positions are not scaled. Newer files say all of rotation in rope_parameters.
const Json* ScalingOf(const Json& config) {
  const Json* const scaling = Member(config, "rope_scaling");
  return scaling != nullptr ? scaling : Member(config, "rope_parameters");
}

}  // namespace

absl::Status ReadRopeOfConfig(const Json& config, ModelSizes* sizes) {
  const Json* const scaling = ScalingOf(config);
  std::optional<double> base = NumberOf(config, "rope_theta");
  if (!base.has_value() && scaling != nullptr) base = NumberOf(*scaling, "rope_theta");
  sizes->rope_base = base.value_or(kBaseIfUnsaid);
  if (!IsSize(sizes->rope_base))
    return absl::InvalidArgumentError("has no rope_theta that makes sense in its config.json");
  const Json* const said = scaling != nullptr ? scaling : &config;
  for (const Json* const object : {&config, said}) {
    if (NumberOf(*object, "partial_rotary_factor").value_or(1) != 1)
      return absl::UnimplementedError("rotates a part of each head, which is not supported");
  }
  if (scaling == nullptr) return absl::OkStatus();
  std::string_view kind = TextOf(*scaling, "rope_type");
  if (kind.empty()) kind = TextOf(*scaling, "type");
  if (kind == "llama3") return ReadLlama3(*scaling, sizes);
  // Files that say the base alone have no kind.
  const bool is_base_alone = kind.empty() && Member(*scaling, "factor") == nullptr &&
                             Member(*scaling, "rope_theta") != nullptr;
  if (kind == "default" || is_base_alone) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("scales its positions (", Quoted(kind), "), which is not supported"));
}

}  // namespace serve::llm

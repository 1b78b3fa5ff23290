// What a JSON file from anywhere says: values of the kind that is asked for, or nothing. A value
// that is null is as absent.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace serve::llm {

using Json = nlohmann::json;

inline constexpr size_t kJsonBytesMax = size_t{128} << 20;
inline constexpr size_t kJsonDepthMax = 64;  // lists and objects in each other

// Refused: what is no object, is too large, or too deep: each level of a tree takes memory. A
// failure's message is the end of a sentence that begins with the file's name.
absl::StatusOr<Json> DecodeJsonUntrusted(std::string_view text);

// Null: `object` is none, or has no such member.
const Json* Member(const Json& object, const char* name);

std::optional<bool> TruthOf(const Json& object, const char* name);
std::optional<double> NumberOf(const Json& object, const char* name);
std::optional<uint64_t> UnsignedOf(const Json& object, const char* name);
// A view into `object`; empty: it has no such text.
std::string_view TextOf(const Json& object, const char* name);
// An empty array: it has none of this name.
const Json& ArrayOf(const Json& object, const char* name);

}  // namespace serve::llm

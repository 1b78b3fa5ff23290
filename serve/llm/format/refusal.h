// Sentences with which decoders of models' files refuse them. Each is the end of a sentence that
// begins with the file's name.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace serve::llm {

// "is damaged: WHAT; fetch it again"
absl::Status Damaged(std::string_view what);
// "is cut short in its WHERE; fetch it again"
absl::Status CutShort(std::string_view where);
// A text of a file as a sentence shows it: at most 80 bytes, without letters that could steer a
// terminal.
std::string Quoted(std::string_view text);

}  // namespace serve::llm

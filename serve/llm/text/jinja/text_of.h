// Values as text: str(), repr() and json.dumps() of Python.
//
// Thread safety: functions of one rendering. A value that has no such text fails the rendering;
// then the result has no meaning.
#pragma once

#include <string>

#include "serve/llm/text/jinja/rendering.h"

namespace serve::llm::jinja {

// As a template prints it: str(). Undefined values are empty.
std::string PlainText(Rendering& rendering, const Value& value);

// As repr() writes a number.
std::string FloatText(double number);

struct JsonLayout {
  bool indented = false;
  std::string indent;  // of one level
  std::string between_items = ", ";
  std::string after_key = ": ";
  bool ascii = false;
  bool sorted = false;
};
std::string JsonText(Rendering& rendering, const Value& value, const JsonLayout& layout);

}  // namespace serve::llm::jinja

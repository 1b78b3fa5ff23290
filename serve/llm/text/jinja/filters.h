// The filters, by what they work on. builtin.h's Filters() is the table of all.
//
// Thread safety: functions of one rendering.
#pragma once

#include "serve/llm/text/jinja/builtin.h"

namespace serve::llm::jinja {

// text_filters.cc
Value TrimFilter(Rendering& rendering, const Value& self, const Given& given);
Value UpperFilter(Rendering& rendering, const Value& self, const Given& given);
Value LowerFilter(Rendering& rendering, const Value& self, const Given& given);
Value TitleFilter(Rendering& rendering, const Value& self, const Given& given);
Value CapitalizeFilter(Rendering& rendering, const Value& self, const Given& given);
Value ReplaceFilter(Rendering& rendering, const Value& self, const Given& given);
Value IndentFilter(Rendering& rendering, const Value& self, const Given& given);
Value StringFilter(Rendering& rendering, const Value& self, const Given& given);
Value JsonFilter(Rendering& rendering, const Value& self, const Given& given);
Value JoinFilter(Rendering& rendering, const Value& self, const Given& given);

// number_filters.cc
Value AbsFilter(Rendering& rendering, const Value& self, const Given& given);
Value FloatFilter(Rendering& rendering, const Value& self, const Given& given);
Value IntFilter(Rendering& rendering, const Value& self, const Given& given);
Value RoundFilter(Rendering& rendering, const Value& self, const Given& given);

// selection_filters.cc
Value MapFilter(Rendering& rendering, const Value& self, const Given& given);
Value RejectFilter(Rendering& rendering, const Value& self, const Given& given);
Value RejectAttributeFilter(Rendering& rendering, const Value& self, const Given& given);
Value SelectFilter(Rendering& rendering, const Value& self, const Given& given);
Value SelectAttributeFilter(Rendering& rendering, const Value& self, const Given& given);

// order_filters.cc
Value DictSortFilter(Rendering& rendering, const Value& self, const Given& given);
Value MaxFilter(Rendering& rendering, const Value& self, const Given& given);
Value MinFilter(Rendering& rendering, const Value& self, const Given& given);
Value SortFilter(Rendering& rendering, const Value& self, const Given& given);
Value UniqueFilter(Rendering& rendering, const Value& self, const Given& given);

// What attribute='a.b.0' names within a value; the value itself without one.
Value AttributePath(Rendering& rendering, const Value& value, const Value& path);

}  // namespace serve::llm::jinja

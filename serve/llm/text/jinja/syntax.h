// A template as a tree. The parser makes it and checks it; evaluators read it and change nothing.
//
// Thread safety: a tree that is made may be read from any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/llm/text/jinja/builtin.h"
#include "serve/llm/text/jinja/value.h"

namespace serve::llm::jinja {

// Expressions within expressions and tags within tags, in the source. Each chain (a + b + c, x.y.z,
// a | b | c) counts with its length, since evaluating it is as deep.
inline constexpr int kSyntaxDepthMax = 200;

enum class ExpressionKind {
  kConstant,     // constant
  kName,         // name
  kList,         // parts
  kTuple,        // parts
  kDictionary,   // parts: key, value, key, value, ...
  kAttribute,    // parts[0].name
  kSubscript,    // parts[0][parts[1]]
  kSlice,        // parts[0][parts[1]:parts[2]:parts[3]]; the last three may be null
  kCall,         // parts[0](the other parts, named)
  kFilter,       // parts[0] | builtin(the other parts, named)
  kTest,         // parts[0] is builtin(the other parts, named)
  kNot,          // parts[0]
  kNegative,     // parts[0]
  kPositive,     // parts[0]
  kArithmetic,   // parts[0] operators[0] parts[1]
  kComparison,   // parts[0] operators[0] parts[1] operators[1] parts[2] ...
  kAnd,          // parts[0], parts[1]
  kOr,           // parts[0], parts[1]
  kConcatenate,  // parts
  kConditional,  // parts[1] if parts[0] else parts[2], which may be null
};

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kUnequal,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 0;
  int depth = 1;
  Value constant;
  std::string name;
  const Builtin* builtin = nullptr;
  std::vector<Operator> operators;
  std::vector<ExpressionPointer> parts;
  std::vector<std::pair<std::string, ExpressionPointer>> named;  // keyword arguments
};

enum class StatementKind {
  kData,      // text
  kOutput,    // value
  kIf,        // branches
  kFor,       // target, value, condition (may be null), body, otherwise
  kSet,       // target, value
  kSetBlock,  // target, body; value: filters of the body's text, or null
  kMacro,     // text is its name; parameters, body
  kScope,     // body, which sets variables for itself alone: {% generation %}
  kBreak,
  kContinue,
};

struct Statement;
using Statements = std::vector<Statement>;

struct Branch {
  ExpressionPointer condition;  // null: else
  Statements body;
};

struct Statement {
  StatementKind kind = StatementKind::kData;
  int line = 0;
  std::string text;
  ExpressionPointer target;
  ExpressionPointer value;
  ExpressionPointer condition;
  std::vector<Branch> branches;
  // Of a loop: its body asks how many items there are, or for the next one, so that the condition
  // of all is evaluated before the body.
  bool looks_ahead = false;
  std::vector<std::pair<std::string, ExpressionPointer>> parameters;  // null: no default
  Statements body;
  Statements otherwise;
};

// In the tree of a set block's filters: stands for the body's text.
inline constexpr const char kBodyName[] = "{body}";

}  // namespace serve::llm::jinja

// Operands of expressions: constants, variables, and what stands behind them: attributes, calls,
// filters, tests.
#include <algorithm>
#include <charconv>

#include "serve/llm/text/jinja/expression_parser.h"

namespace serve::llm::jinja {
namespace {

constexpr std::string_view kNoVariables[] = {
    "and",    "or",     "not",    "if",   "else",  "elif",   "in",      "is",    "for",
    "lipsum", "cycler", "joiner", "self", "super", "caller", "varargs", "kwargs"};

// What `loop` says without a look at items to come.
constexpr std::string_view kOfThePast[] = {"index",  "index0",   "first", "depth",
                                           "depth0", "previtem", "cycle", "changed"};

// Methods that change a value: Jinja's immutable sandbox refuses them as well.
constexpr std::string_view kChanges[] = {"append", "extend", "insert",     "pop",    "remove",
                                         "clear",  "update", "setdefault", "popitem"};

template <size_t kCount>
bool IsOneOf(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether a test has an argument without brackets behind it: `x is eq 1`.
bool BeginsOperand(const Token& token) {
  switch (token.kind) {
    case TokenKind::kName:
      return token.text != "else" && token.text != "or" && token.text != "and";
    case TokenKind::kText:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kOperator:
      return token.text == "(" || token.text == "[" || token.text == "{";
    default:
      return false;
  }
}

// Texts beside each other are one.
ExpressionPointer TextConstant(TokenCursor& cursor) {
  ExpressionPointer made = MakeExpression(ExpressionKind::kConstant, cursor.now().line);
  std::string text;
  while (cursor.IsAt(TokenKind::kText)) text += cursor.Take().text;
  made->constant = Value(std::move(text));
  return made;
}

// Whole numbers are of 64 bits here; Python's have no end.
ExpressionPointer NumberConstant(TokenCursor& cursor) {
  const Token& token = cursor.Take();
  ExpressionPointer made = MakeExpression(ExpressionKind::kConstant, token.line);
  const char* const end = token.text.data() + token.text.size();
  std::errc error;
  if (token.kind == TokenKind::kInteger) {
    int64_t number = 0;
    error = std::from_chars(token.text.data(), end, number).ec;
    made->constant = Value(number);
  } else {
    double number = 0;
    error = std::from_chars(token.text.data(), end, number).ec;
    made->constant = Value(number);
  }
  if (error != std::errc())
    cursor.FailAt(token.line, "the number ", token.text, " is out of range");
  return made;
}

}  // namespace

// An operand without what stands behind it.
ExpressionPointer ExpressionParser::Primary() {
  switch (cursor_.now().kind) {
    case TokenKind::kName:
      return NameOrConstant();
    case TokenKind::kText:
      return TextConstant(cursor_);
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return NumberConstant(cursor_);
    default:
      break;
  }
  const int line = cursor_.now().line;
  if (cursor_.SkipOperator("(")) {
    const bool empty = cursor_.IsAtOperator(")");
    ExpressionPointer inner =
        empty ? MakeExpression(ExpressionKind::kTuple, line) : WholeOrTuple(true);
    cursor_.ExpectOperator(")");
    return inner;
  }
  if (cursor_.IsAtOperator("[")) return List();
  if (cursor_.IsAtOperator("{")) return Dictionary();
  cursor_.Fail("expected an expression");
  return MakeExpression(ExpressionKind::kConstant, 0);
}

// Jinja takes true and True, none and None alike.
ExpressionPointer ExpressionParser::NameOrConstant() {
  const Token& token = cursor_.Take();
  const std::string_view name = token.text;
  if (IsOneOf(kNoVariables, name))
    cursor_.FailAt(token.line, "'", name, "' is not supported as a variable");
  ExpressionPointer made = MakeExpression(ExpressionKind::kConstant, token.line);
  if (name == "true" || name == "True") {
    made->constant = Value(true);
  } else if (name == "false" || name == "False") {
    made->constant = Value(false);
  } else if (name == "none" || name == "None") {
    made->constant = Value(None());
  } else {
    made->kind = ExpressionKind::kName;
    made->name = name;
    const bool of_the_past = cursor_.IsAtOperator(".") && IsOneOf(kOfThePast, cursor_.next().text);
    looks_ahead_ |= name == "loop" && !of_the_past;
  }
  return made;
}

// The last comma may stand before the bracket; so in mappings and arguments.
ExpressionPointer ExpressionParser::List() {
  ExpressionPointer list = MakeExpression(ExpressionKind::kList, cursor_.Take().line);
  while (!cursor_.failed() && !cursor_.IsAtOperator("]")) {
    Adopt(list.get(), Whole());
    if (!cursor_.SkipOperator(",")) break;
  }
  cursor_.ExpectOperator("]");
  return list;
}

ExpressionPointer ExpressionParser::Dictionary() {
  ExpressionPointer dictionary = MakeExpression(ExpressionKind::kDictionary, cursor_.Take().line);
  while (!cursor_.failed() && !cursor_.IsAtOperator("}")) {
    Adopt(dictionary.get(), Whole());
    cursor_.ExpectOperator(":");
    Adopt(dictionary.get(), Whole());
    if (!cursor_.SkipOperator(",")) break;
  }
  cursor_.ExpectOperator("}");
  return dictionary;
}

ExpressionPointer ExpressionParser::Postfix(ExpressionPointer inner) {
  while (true) {
    if (cursor_.IsAtOperator("."))
      inner = Attribute(std::move(inner));
    else if (cursor_.IsAtOperator("["))
      inner = Subscript(std::move(inner));
    else if (cursor_.IsAtOperator("("))
      inner = Call(std::move(inner));
    else
      return inner;
  }
}

// x.0 is x[0].
ExpressionPointer ExpressionParser::Attribute(ExpressionPointer inner) {
  const int line = cursor_.Take().line;
  if (cursor_.IsAt(TokenKind::kInteger))
    return Join(ExpressionKind::kSubscript, std::move(inner), NumberConstant(cursor_));
  ExpressionPointer attribute = MakeExpression(ExpressionKind::kAttribute, line);
  attribute->name = cursor_.now().text;
  cursor_.Expect(TokenKind::kName, "the name of an attribute");
  // A sandbox of Python's keeps them from templates, since they lead out of it.
  if (attribute->name.starts_with("__"))
    cursor_.FailAt(line, "the attribute '", attribute->name, "' is not supported");
  Adopt(attribute.get(), std::move(inner));
  return attribute;
}

// Each bound of a slice may be left out.
ExpressionPointer ExpressionParser::Subscript(ExpressionPointer inner) {
  ExpressionPointer subscript = MakeExpression(ExpressionKind::kSubscript, cursor_.Take().line);
  const auto is_at_end = [this] { return cursor_.IsAtOperator("]") || cursor_.IsAtOperator(":"); };
  Adopt(subscript.get(), std::move(inner));
  Adopt(subscript.get(), cursor_.IsAtOperator(":") ? nullptr : Whole());
  if (cursor_.SkipOperator(":")) {
    subscript->kind = ExpressionKind::kSlice;
    Adopt(subscript.get(), is_at_end() ? nullptr : Whole());
    const bool has_step = cursor_.SkipOperator(":") && !is_at_end();
    Adopt(subscript.get(), has_step ? Whole() : nullptr);
  }
  if (cursor_.IsAtOperator(",")) cursor_.Fail("a subscript of several parts is not supported");
  cursor_.ExpectOperator("]");
  return subscript;
}

// Methods are known by name when the template is read, whatever value the call will meet.
ExpressionPointer ExpressionParser::Call(ExpressionPointer inner) {
  ExpressionPointer call = MakeExpression(ExpressionKind::kCall, cursor_.now().line);
  if (inner->kind == ExpressionKind::kAttribute) {
    if (IsOneOf(kChanges, inner->name))
      cursor_.Fail("the method '", inner->name, "' changes a value, which a template may not");
    if (!IsMethodName(inner->name)) cursor_.Fail("the method '", inner->name, "' is not supported");
  }
  Adopt(call.get(), std::move(inner));
  CallArguments(call.get());
  return call;
}

// Arguments by place come before those by name, as in Python.
void ExpressionParser::CallArguments(Expression* call) {
  cursor_.ExpectOperator("(");
  while (!cursor_.failed() && !cursor_.IsAtOperator(")")) {
    if (cursor_.IsAtOperator("*") || cursor_.IsAtOperator("**"))
      cursor_.Fail("arguments with '*' are not supported");
    const bool is_named = cursor_.IsAt(TokenKind::kName) &&
                          cursor_.next().kind == TokenKind::kOperator && cursor_.next().text == "=";
    if (is_named) {
      std::string name = cursor_.Take().text;
      cursor_.Take();
      ExpressionPointer value = Whole();
      call->depth = std::max(call->depth, value->depth + 1);
      call->named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!call->named.empty())
        cursor_.Fail("an argument without a name stands behind a named one");
      Adopt(call, Whole());
    }
    if (!cursor_.SkipOperator(",")) break;
  }
  cursor_.ExpectOperator(")");
}

ExpressionPointer ExpressionParser::Filters(ExpressionPointer input) {
  while (cursor_.SkipOperator("|")) {
    ExpressionPointer filter = MakeExpression(ExpressionKind::kFilter, cursor_.now().line);
    filter->name = cursor_.now().text;
    cursor_.Expect(TokenKind::kName, "the name of a filter");
    filter->builtin = FindBuiltin(jinja::Filters(), filter->name);
    if (filter->builtin == nullptr)
      cursor_.FailAt(filter->line, "the filter '", filter->name, "' is not supported");
    Adopt(filter.get(), std::move(input));
    if (cursor_.IsAtOperator("(")) CallArguments(filter.get());
    input = std::move(filter);
  }
  return input;
}

ExpressionPointer ExpressionParser::Test(ExpressionPointer inner) {
  const int line = cursor_.Take().line;
  const bool inverse = cursor_.SkipName("not");
  ExpressionPointer test = MakeExpression(ExpressionKind::kTest, line);
  test->name = cursor_.now().text;
  cursor_.Expect(TokenKind::kName, "the name of a test");
  test->builtin = FindBuiltin(Tests(), test->name);
  if (test->builtin == nullptr)
    cursor_.FailAt(line, "the test '", test->name, "' is not supported");
  Adopt(test.get(), std::move(inner));
  if (cursor_.IsAtOperator("(")) {
    CallArguments(test.get());
  } else if (BeginsOperand(cursor_.now())) {
    if (cursor_.IsAtName("is")) cursor_.Fail("tests with 'is' make no chain");
    Adopt(test.get(), Postfix(Primary()));
  }
  if (!inverse) return test;
  ExpressionPointer negated = MakeExpression(ExpressionKind::kNot, line);
  Adopt(negated.get(), std::move(test));
  return negated;
}

}  // namespace serve::llm::jinja

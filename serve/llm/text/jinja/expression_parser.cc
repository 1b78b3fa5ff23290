#include "serve/llm/text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

namespace serve::llm::jinja {
namespace {

// They are no variables, wherever they stand.
constexpr std::string_view kKeywords[] = {"and",  "or", "not", "if", "else",
                                          "elif", "in", "is",  "for"};

bool IsKeyword(std::string_view name) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords);
}

struct Spelling {
  std::string_view text;
  Operator meaning;
};
constexpr Spelling kComparisons[] = {{"==", Operator::kEqual},  {"!=", Operator::kUnequal},
                                     {"<", Operator::kLess},    {"<=", Operator::kLessOrEqual},
                                     {">", Operator::kGreater}, {">=", Operator::kGreaterOrEqual}};
constexpr Spelling kProducts[] = {{"*", Operator::kMultiply},
                                  {"/", Operator::kDivide},
                                  {"//", Operator::kFloorDivide},
                                  {"%", Operator::kModulo}};
constexpr Spelling kSums[] = {{"+", Operator::kAdd}, {"-", Operator::kSubtract}};

// Null: the token is none of them.
template <size_t kCount>
const Spelling* Find(const Spelling (&spellings)[kCount], const Token& token) {
  if (token.kind != TokenKind::kOperator) return nullptr;
  const Spelling* const found =
      std::find_if(std::begin(spellings), std::end(spellings),
                   [&](const Spelling& each) { return each.text == token.text; });
  return found == std::end(spellings) ? nullptr : found;
}

// An operator of comparison, and of how many tokens it is.
bool IsAtComparison(const TokenCursor& cursor, Operator* which, int* tokens) {
  const bool is_not_in = cursor.IsAtName("not") && cursor.next().kind == TokenKind::kName &&
                         cursor.next().text == "in";
  *tokens = is_not_in ? 2 : 1;
  if (const Spelling* const found = Find(kComparisons, cursor.now())) {
    *which = found->meaning;
    return true;
  }
  *which = is_not_in ? Operator::kNotIn : Operator::kIn;
  return is_not_in || cursor.IsAtName("in");
}

}  // namespace

bool ExpressionParser::Enter() {
  if (++depth_ > kSyntaxDepthMax) cursor_.Fail("it nests over ", kSyntaxDepthMax, " deep");
  return !cursor_.failed();
}

ExpressionPointer MakeExpression(ExpressionKind kind, int line) {
  ExpressionPointer made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line;
  return made;
}

// A chain as long as the source (a + b + c) is as deep as it is long: evaluating it is recursive.
void ExpressionParser::Adopt(Expression* parent, ExpressionPointer part) {
  if (part != nullptr) parent->depth = std::max(parent->depth, part->depth + 1);
  if (parent->depth > kSyntaxDepthMax) cursor_.Fail("it nests over ", kSyntaxDepthMax, " deep");
  parent->parts.push_back(std::move(part));
}

ExpressionPointer ExpressionParser::Join(ExpressionKind kind, ExpressionPointer left,
                                         ExpressionPointer right) {
  ExpressionPointer joined = MakeExpression(kind, left->line);
  Adopt(joined.get(), std::move(left));
  Adopt(joined.get(), std::move(right));
  return joined;
}

// Conditionals bind least, and chain to the right: x if y else (z if w else v).
ExpressionPointer ExpressionParser::Whole() {
  if (!Enter()) return MakeExpression(ExpressionKind::kConstant, 0);
  ExpressionPointer whole = Or();
  while (cursor_.SkipName("if")) {
    ExpressionPointer conditional = MakeExpression(ExpressionKind::kConditional, whole->line);
    Adopt(conditional.get(), Or());
    Adopt(conditional.get(), std::move(whole));
    Adopt(conditional.get(), cursor_.SkipName("else") ? Whole() : nullptr);
    whole = std::move(conditional);
  }
  Leave();
  return whole;
}

// The tuple's last comma may end it, as in (1,).
ExpressionPointer ExpressionParser::WholeOrTuple(bool with_if) {
  ExpressionPointer first = with_if ? Whole() : Or();
  if (!cursor_.IsAtOperator(",")) return first;
  ExpressionPointer tuple = MakeExpression(ExpressionKind::kTuple, first->line);
  Adopt(tuple.get(), std::move(first));
  while (cursor_.SkipOperator(",")) {
    const bool ends = cursor_.IsAt(TokenKind::kVariableEnd) || cursor_.IsAt(TokenKind::kBlockEnd) ||
                      cursor_.IsAtOperator(")");
    if (ends) break;
    Adopt(tuple.get(), with_if ? Whole() : Or());
  }
  return tuple;
}

ExpressionPointer ExpressionParser::Target(bool attributes) {
  if (!Enter()) return MakeExpression(ExpressionKind::kConstant, 0);
  ExpressionPointer tuple = MakeExpression(ExpressionKind::kTuple, cursor_.now().line);
  bool commas = false;
  do {
    ExpressionPointer each;
    if (cursor_.SkipOperator("(")) {
      each = Target(false);
      cursor_.ExpectOperator(")");
    } else if (cursor_.IsAt(TokenKind::kName) && !IsKeyword(cursor_.now().text)) {
      each = MakeExpression(ExpressionKind::kName, cursor_.now().line);
      each->name = cursor_.Take().text;
    } else if (commas) {
      break;  // a comma may be the last
    } else {
      cursor_.Fail("expected a variable to assign to");
      break;
    }
    if (attributes && each->kind == ExpressionKind::kName && cursor_.IsAtOperator("."))
      each = Attribute(std::move(each));
    Adopt(tuple.get(), std::move(each));
    commas |= cursor_.IsAtOperator(",");
  } while (cursor_.SkipOperator(","));
  Leave();
  return commas || tuple->parts.empty() ? std::move(tuple) : std::move(tuple->parts[0]);
}

// The operators from here on bind more tightly one after the other.
ExpressionPointer ExpressionParser::Or() {
  ExpressionPointer left = And();
  while (cursor_.SkipName("or")) left = Join(ExpressionKind::kOr, std::move(left), And());
  return left;
}

ExpressionPointer ExpressionParser::And() {
  ExpressionPointer left = Not();
  while (cursor_.SkipName("and")) left = Join(ExpressionKind::kAnd, std::move(left), Not());
  return left;
}

ExpressionPointer ExpressionParser::Not() {
  if (!cursor_.IsAtName("not")) return Comparison();
  if (!Enter()) return MakeExpression(ExpressionKind::kConstant, 0);
  ExpressionPointer inverse = MakeExpression(ExpressionKind::kNot, cursor_.Take().line);
  Adopt(inverse.get(), Not());
  Leave();
  return inverse;
}

// One expression for the whole chain, since a < b < c looks at b once.
ExpressionPointer ExpressionParser::Comparison() {
  ExpressionPointer left = Sum();
  Operator which;
  int tokens;
  if (!IsAtComparison(cursor_, &which, &tokens)) return left;
  ExpressionPointer chain = MakeExpression(ExpressionKind::kComparison, left->line);
  Adopt(chain.get(), std::move(left));
  do {
    while (tokens-- > 0) cursor_.Take();
    chain->operators.push_back(which);
    Adopt(chain.get(), Sum());
  } while (IsAtComparison(cursor_, &which, &tokens));
  return chain;
}

ExpressionPointer ExpressionParser::Sum() {
  ExpressionPointer left = Concatenation();
  while (const Spelling* const found = Find(kSums, cursor_.now())) {
    cursor_.Take();
    left = Join(ExpressionKind::kArithmetic, std::move(left), Concatenation());
    left->operators.push_back(found->meaning);
  }
  return left;
}

// All parts in one expression, so that a long row of texts is not deep.
ExpressionPointer ExpressionParser::Concatenation() {
  ExpressionPointer first = Product();
  if (!cursor_.IsAtOperator("~")) return first;
  ExpressionPointer all = MakeExpression(ExpressionKind::kConcatenate, first->line);
  Adopt(all.get(), std::move(first));
  while (cursor_.SkipOperator("~")) Adopt(all.get(), Product());
  return all;
}

ExpressionPointer ExpressionParser::Product() {
  ExpressionPointer left = Power();
  while (const Spelling* const found = Find(kProducts, cursor_.now())) {
    cursor_.Take();
    left = Join(ExpressionKind::kArithmetic, std::move(left), Power());
    left->operators.push_back(found->meaning);
  }
  return left;
}

// To the left, unlike in Python: 2 ** 3 ** 2 is 64.
ExpressionPointer ExpressionParser::Power() {
  ExpressionPointer left = Unary(true);
  while (cursor_.SkipOperator("**")) {
    left = Join(ExpressionKind::kArithmetic, std::move(left), Unary(true));
    left->operators.push_back(Operator::kPower);
  }
  return left;
}

// A sign binds more tightly than filters: -1 | abs is (-1) | abs.
ExpressionPointer ExpressionParser::Unary(bool with_filters) {
  if (!Enter()) return MakeExpression(ExpressionKind::kConstant, 0);
  ExpressionPointer inner;
  if (cursor_.IsAtOperator("-") || cursor_.IsAtOperator("+")) {
    const bool negative = cursor_.IsAtOperator("-");
    inner = MakeExpression(negative ? ExpressionKind::kNegative : ExpressionKind::kPositive,
                           cursor_.Take().line);
    Adopt(inner.get(), Unary(false));
  } else {
    inner = Primary();
  }
  inner = Postfix(std::move(inner));
  if (with_filters) inner = FiltersAndTests(std::move(inner));
  Leave();
  return inner;
}

// What a filter or a test gives may be called.
ExpressionPointer ExpressionParser::FiltersAndTests(ExpressionPointer inner) {
  while (true) {
    if (cursor_.IsAtOperator("|"))
      inner = Filters(std::move(inner));
    else if (cursor_.IsAtName("is"))
      inner = Test(std::move(inner));
    else if (cursor_.IsAtOperator("("))
      inner = Call(std::move(inner));
    else
      return inner;
  }
}

}  // namespace serve::llm::jinja

#include "serve/llm/text/jinja/template_parser.h"

#include <algorithm>
#include <initializer_list>

#include "serve/llm/text/jinja/expression_parser.h"

namespace serve::llm::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class TemplateParser {
 public:
  explicit TemplateParser(std::vector<Token> tokens)
      : cursor_(std::move(tokens)), expressions_(&cursor_) {}

  absl::StatusOr<Statements> All() {
    Statements all = Until({});
    if (cursor_.failed()) return cursor_.failure();
    return all;
  }

 private:
  Statements Until(Names ends);
  Statements Body(Names ends);
  void Tag(Statements* statements);
  void EndTag() { cursor_.Expect(TokenKind::kBlockEnd, "'%}'"); }
  bool IsAtEnd(Names ends) const;

  void Output(Statements* statements);
  void If(Statement* statement);
  void For(Statement* statement);
  void Set(Statement* statement);
  void Macro(Statement* statement);
  void Parameters(Statement* macro);
  void Generation(Statement* statement);
  void LeaveLoop(Statement* statement);

  TokenCursor cursor_;
  ExpressionParser expressions_;
  int loops_ = 0;  // that a {% break %} here may leave
};

// At {% with the name of one of these behind it.
bool TemplateParser::IsAtEnd(Names ends) const {
  return cursor_.next().kind == TokenKind::kName &&
         std::find(ends.begin(), ends.end(), cursor_.next().text) != ends.end();
}

// Statements up to a tag with one of these names, and that tag's `{%`; without names, all.
Statements TemplateParser::Until(Names ends) {
  Statements statements;
  if (!expressions_.Enter()) return statements;
  while (!cursor_.IsAt(TokenKind::kEnd)) {
    if (cursor_.IsAt(TokenKind::kData)) {
      const Token& data = cursor_.Take();
      statements.push_back({.kind = StatementKind::kData, .line = data.line, .text = data.text});
    } else if (cursor_.IsAt(TokenKind::kVariableBegin)) {
      Output(&statements);
    } else {
      const bool ended = IsAtEnd(ends);
      cursor_.Take();
      if (ended) break;
      Tag(&statements);
    }
  }
  if (ends.size() > 0 && cursor_.IsAt(TokenKind::kEnd))
    cursor_.Fail("a tag {% ", *(ends.end() - 1), " %} is missing");
  expressions_.Leave();
  return statements;
}

// What stands behind a tag's expression: an optional colon, the tag's end, statements.
Statements TemplateParser::Body(Names ends) {
  cursor_.SkipOperator(":");
  EndTag();
  return Until(ends);
}

// Values with commas between them are printed as a tuple.
void TemplateParser::Output(Statements* statements) {
  Statement output{.kind = StatementKind::kOutput, .line = cursor_.Take().line};
  output.value = expressions_.WholeOrTuple(true);
  cursor_.Expect(TokenKind::kVariableEnd, "'}}'");
  statements->push_back(std::move(output));
}

// A tag, and everything up to the end of the tag.
void TemplateParser::Tag(Statements* statements) {
  const Token& name = cursor_.Take();
  Statement statement{.line = name.line};
  if (name.text == "if") {
    If(&statement);
  } else if (name.text == "for") {
    For(&statement);
  } else if (name.text == "set") {
    Set(&statement);
  } else if (name.text == "macro") {
    Macro(&statement);
  } else if (name.text == "generation") {
    Generation(&statement);
  } else if (name.text == "break" || name.text == "continue") {
    statement.kind = name.text == "break" ? StatementKind::kBreak : StatementKind::kContinue;
    LeaveLoop(&statement);
  } else {
    cursor_.FailAt(name.line, "the tag {% ", name.text, " %} is not supported here");
  }
  EndTag();
  statements->push_back(std::move(statement));
}

// Branches in order; the one without a condition is the last.
void TemplateParser::If(Statement* statement) {
  statement->kind = StatementKind::kIf;
  bool goes_on = true;
  while (goes_on) {
    Branch branch{.condition = expressions_.WholeOrTuple(false), .body = {}};
    branch.body = Body({"elif", "else", "endif"});
    statement->branches.push_back(std::move(branch));
    goes_on = cursor_.SkipName("elif");
  }
  if (cursor_.SkipName("else"))
    statement->branches.push_back({.condition = nullptr, .body = Body({"endif"})});
  cursor_.ExpectName("endif");
}

// The iterable and the condition stand apart: `for x in y if z` has no conditional expression.
void TemplateParser::For(Statement* statement) {
  statement->kind = StatementKind::kFor;
  statement->target = expressions_.Target(false);
  cursor_.ExpectName("in");
  statement->value = expressions_.WholeOrTuple(false);
  if (cursor_.SkipName("if")) statement->condition = expressions_.Whole();
  if (cursor_.IsAtName("recursive")) cursor_.Fail("a recursive loop is not supported");
  const bool outer_looks_ahead = expressions_.ExchangeLooksAhead(false);
  ++loops_;
  statement->body = Body({"else", "endfor"});
  --loops_;
  statement->looks_ahead = expressions_.ExchangeLooksAhead(outer_looks_ahead);
  if (cursor_.SkipName("else")) statement->otherwise = Body({"endfor"});
  cursor_.ExpectName("endfor");
}

// Without '=' the value is the text up to {% endset %}.
void TemplateParser::Set(Statement* statement) {
  statement->target = expressions_.Target(true);
  if (cursor_.SkipOperator("=")) {
    statement->kind = StatementKind::kSet;
    statement->value = expressions_.WholeOrTuple(true);
    return;
  }
  statement->kind = StatementKind::kSetBlock;
  if (cursor_.IsAtOperator("|")) {
    ExpressionPointer body = std::make_unique<Expression>();
    body->kind = ExpressionKind::kName;
    body->name = kBodyName;
    body->line = statement->line;
    statement->value = expressions_.Filters(std::move(body));
  }
  const int loops = std::exchange(loops_, 0);
  statement->body = Body({"endset"});
  loops_ = loops;
  cursor_.ExpectName("endset");
}

// Parameters with defaults come last, as in Python.
void TemplateParser::Parameters(Statement* macro) {
  cursor_.ExpectOperator("(");
  while (!cursor_.failed() && !cursor_.IsAtOperator(")")) {
    std::string name = cursor_.now().text;
    cursor_.Expect(TokenKind::kName, "the name of a parameter");
    ExpressionPointer fallback = cursor_.SkipOperator("=") ? expressions_.Whole() : nullptr;
    const bool has_default_before =
        !macro->parameters.empty() && macro->parameters.back().second != nullptr;
    if (has_default_before && fallback == nullptr)
      cursor_.Fail("a parameter without a default stands behind one with a default");
    macro->parameters.emplace_back(std::move(name), std::move(fallback));
    if (!cursor_.SkipOperator(",")) break;
  }
  cursor_.ExpectOperator(")");
}

// A {% break %} in a macro leaves no loop around the macro's definition.
void TemplateParser::Macro(Statement* statement) {
  statement->kind = StatementKind::kMacro;
  statement->text = cursor_.now().text;
  cursor_.Expect(TokenKind::kName, "the name of a macro");
  Parameters(statement);
  const int loops = std::exchange(loops_, 0);
  statement->body = Body({"endmacro"});
  loops_ = loops;
  cursor_.ExpectName("endmacro");
}

// The mark says which text an assistant wrote; for a prompt that makes no difference.
void TemplateParser::Generation(Statement* statement) {
  statement->kind = StatementKind::kScope;
  const int loops = std::exchange(loops_, 0);
  statement->body = Body({"endgeneration"});
  loops_ = loops;
  cursor_.ExpectName("endgeneration");
}

void TemplateParser::LeaveLoop(Statement* statement) {
  if (loops_ == 0) cursor_.FailAt(statement->line, "no loop is here that a tag could leave");
}

}  // namespace

absl::StatusOr<Statements> ParseTemplateUntrusted(std::string_view text) {
  absl::StatusOr<std::vector<Token>> tokens = TokensOfUntrusted(text);
  if (!tokens.ok()) return tokens.status();
  return TemplateParser(*std::move(tokens)).All();
}

}  // namespace serve::llm::jinja

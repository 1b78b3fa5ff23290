// One rendering of a template: the work that is left to do, the first failure, the clock, and the
// rendering's objects. A failure sticks: whatever goes on computing after it gets undefined
// values, and loops look whether the rendering has failed.
//
// Work is counted in steps, the same on every machine: one for each part of an expression or a
// statement, and one for every kBytesOfStep bytes or for each item that an operation reads or
// makes. So memory is bounded with it.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "serve/llm/text/jinja/value.h"

namespace serve::llm::jinja {

inline constexpr int64_t kStepsMax = 2'000'000;
inline constexpr size_t kBytesOfStep = 32;
inline constexpr int kEvaluationDepthMax = 400;            // with macros that call macros
inline constexpr size_t kTextBytesMax = size_t{16} << 20;  // of one text, and of the output

// The variables of a block; those of the blocks around it are looked for after them.
struct Scope {
  const Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;  // names belong to the template

  void Set(std::string_view name, Value value);
  // Null: nowhere. Adds to `looked` how many names were compared.
  const Value* Find(std::string_view name, size_t* looked) const;
};

struct Statement;
struct MacroCallable {
  const Statement* statement;
  const Scope* scope;  // where the macro was defined
};

class Rendering {
 public:
  explicit Rendering(const std::tm& now) : now_(now) {}

  // False: the rendering has failed, now or before.
  bool Spend(size_t steps);
  // For names, of which looking compares several in the time of a step.
  bool SpendNames(size_t names) { return Spend(names / 8 + 1); }
  bool SpendBytes(size_t bytes) { return Spend(bytes / kBytesOfStep + 1); }

  // Leave() after each Enter(), also after one that returns false: the rendering has failed.
  bool Enter();
  void Leave() { --depth_; }

  // Undefined, for the caller to return.
  Value Fail(std::string_view sentence);
  // What the template itself says is wrong with a conversation.
  Value RaiseException(std::string_view text);
  bool failed() const { return !failure_.ok(); }
  const absl::Status& failure() const { return failure_; }

  void AtLine(int line) { line_ = line; }
  int line() const { return line_; }
  const std::tm& now() const { return now_; }

  // Checked: text too long, containers too deep.
  Value MakeText(std::string text);
  Value MakeList(Values items) { return Make(SequenceForm::kList, std::move(items)); }
  Value Make(SequenceForm form, Values items);
  Value MakeDictionary(std::vector<std::pair<Value, Value>> entries);

  Namespace* NewNamespace() { return &namespaces_.emplace_back(); }
  Loop* NewLoop() { return &loops_.emplace_back(); }
  Scope* NewScope(const Scope* parent) { return &scopes_.emplace_back(Scope{.parent = parent}); }
  MacroCallable* NewMacro(const Statement* statement, const Scope* scope) {
    return &macros_.emplace_back(MacroCallable{statement, scope});
  }

 private:
  Value Checked(Value value);

  std::tm now_;
  int64_t steps_ = kStepsMax;
  int depth_ = 0;
  int line_ = 1;
  absl::Status failure_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
  std::deque<MacroCallable> macros_;
};

}  // namespace serve::llm::jinja

// Values of a template, as Python has them: what chat templates compute with. Texts, sequences and
// mappings never change once they are made, as in Jinja's ImmutableSandboxedEnvironment; a
// namespace is the one thing that a template may change.
//
// Ownership: texts, sequences, mappings and callables are shared. Namespaces and loops belong to
// the rendering that made them (rendering.h), and no value outlives its rendering. Thread safety: a
// value belongs to one rendering, and a rendering to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace serve::llm::jinja {

// Containers within containers. Bounded, because reading and freeing them is recursive.
inline constexpr int kValueDepthMax = 64;

struct Sequence;
struct Mapping;
struct Callable;
struct Namespace;
struct Loop;

struct Undefined {
  std::string_view name;  // for messages; may be empty. Belongs to the template.
};
struct None {};

using Text = std::shared_ptr<const std::string>;
using SequencePointer = std::shared_ptr<const Sequence>;
using MappingPointer = std::shared_ptr<const Mapping>;
using CallablePointer = std::shared_ptr<const Callable>;

class Value {
 public:
  Value() = default;  // undefined
  Value(Undefined undefined) : held_(undefined) {}
  Value(None none) : held_(none) {}
  Value(bool truth) : held_(truth) {}
  Value(int64_t number) : held_(number) {}
  Value(double number) : held_(number) {}
  Value(std::string text) : held_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(SequencePointer sequence) : held_(std::move(sequence)) {}
  Value(MappingPointer mapping) : held_(std::move(mapping)) {}
  Value(CallablePointer callable) : held_(std::move(callable)) {}
  Value(Namespace* names) : held_(names) {}
  Value(Loop* loop) : held_(loop) {}

  bool IsUndefined() const { return std::holds_alternative<Undefined>(held_); }
  bool IsNone() const { return std::holds_alternative<None>(held_); }
  const Undefined* AsUndefined() const { return std::get_if<Undefined>(&held_); }
  const bool* AsTruth() const { return std::get_if<bool>(&held_); }
  const double* AsFloat() const { return std::get_if<double>(&held_); }
  // Null: no text, sequence, ...
  const std::string* AsText() const { return Behind<std::string>(); }
  const Sequence* AsSequence() const { return Behind<Sequence>(); }
  const Mapping* AsMapping() const { return Behind<Mapping>(); }
  const Callable* AsCallable() const { return Behind<Callable>(); }
  Namespace* AsNamespace() const { return Pointer<Namespace>(); }
  Loop* AsLoop() const { return Pointer<Loop>(); }
  // Whole numbers, and true and false, which Python counts among them.
  bool AsInteger(int64_t* number) const;
  bool IsNumber() const;  // whole, true or false, or float

  // Containers within this one, itself included; 0: it is no container.
  int depth() const;
  // As Python names its type.
  std::string_view type_name() const;

 private:
  template <typename T>
  const T* Behind() const {
    const std::shared_ptr<const T>* const pointer = std::get_if<std::shared_ptr<const T>>(&held_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  template <typename T>
  T* Pointer() const {
    T* const* const pointer = std::get_if<T*>(&held_);
    return pointer == nullptr ? nullptr : *pointer;
  }

  std::variant<Undefined, None, bool, int64_t, double, Text, SequencePointer, MappingPointer,
               CallablePointer, Namespace*, Loop*>
      held_;
};

using Values = std::vector<Value>;

enum class SequenceForm {
  kList,
  kTuple,
  kRange,
  kView,       // of a mapping: has a length, and no numbered items
  kGenerator,  // may be read once, and has no length
};

struct Sequence {
  SequenceForm form = SequenceForm::kList;
  Values items;
  int depth = 1;
  mutable bool taken = false;  // a generator that was read is empty

  bool IsNumbered() const { return form < SequenceForm::kView; }
};

// Keeps the order in which keys came.
struct Mapping {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> names;
};

// The variable `loop`.
struct Loop {
  Values items;
  size_t index = 0;     // of the present iteration
  bool called = false;  // loop.changed() was
  Values last_changed;
};

struct MacroCallable;

// A method or function with a name (builtin.h), or a macro.
struct Builtin;
struct Callable {
  const Builtin* builtin = nullptr;
  Value self;                            // of a method
  const MacroCallable* macro = nullptr;  // belongs to the rendering
};

SequencePointer MakeSequence(SequenceForm form, Values items);
MappingPointer MakeMapping(std::vector<std::pair<Value, Value>> entries);

}  // namespace serve::llm::jinja

// Coroutines for simulated threads: code that waits is written as it would be for a thread, and
// gives the turn away where a thread would sleep.
//
// A Task begins when it is awaited, or by Start(). Where it awaits Turns::NextTurn() the whole
// simulated thread stops; Turns::Resume() lets it go on from there. GCC 12 compiles co_await in a
// condition wrongly: its value goes into a variable first. Thread safety: one thread.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <utility>

namespace harness {

// Where one simulated thread goes on.
class Turns {
 public:
  class Pause {
   public:
    explicit Pause(Turns* turns) : turns_(turns) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> paused) const noexcept { turns_->next_ = paused; }
    void await_resume() const noexcept {}

   private:
    Turns* const turns_;
  };
  Pause NextTurn() { return Pause(this); }
  // Until the next pause or the end of the thread. REQUIRES: it is paused.
  void Resume() { std::exchange(next_, nullptr).resume(); }
  bool paused() const { return next_ != nullptr; }

 private:
  std::coroutine_handle<> next_;
};

namespace task_internal {

struct Resumer {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    const std::coroutine_handle<> next = ended.promise().awaits;
    return next ? next : std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> awaits;  // who waits for the end
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Resumer final_suspend() const noexcept { return {}; }
  void unhandled_exception() const noexcept { std::abort(); }
};

template <class T>
struct ValuePromise : PromiseBase {
  T value{};
  void return_value(T result) { value = std::move(result); }
  T Take() { return std::move(value); }
};
template <>
struct ValuePromise<void> : PromiseBase {
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

}  // namespace task_internal

template <class T = void>
class Task {
 public:
  struct promise_type : task_internal::ValuePromise<T> {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };
  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  void Start() { handle_.resume(); }
  bool done() const { return handle_.done(); }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().awaits = caller;
    return handle_;
  }
  T await_resume() { return handle_.promise().Take(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace harness

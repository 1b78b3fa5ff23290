// Locks that the compiler checks: a Mutex that clang's thread-safety analysis knows.
//
// A member says which mutex guards it (GUARDED_BY), a function says which mutexes its caller holds
// (REQUIRES) or must not hold (EXCLUDES). The ctest style.locks compiles every file that includes
// this header with -Wthread-safety, so an access without the lock fails that test. gcc, which makes
// the product, sees plain calls of std::mutex: these inline classes cost nothing, and
// ThreadSanitizer knows them as the standard library's.
//
// A condition is a loop, because the analysis does not look into a lambda that a wait would take:
//   MutexLock lock(&mutex_);
//   while (queue_.empty()) changed_.Wait(&mutex_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define LANEWAY_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define LANEWAY_THREAD_ATTRIBUTE(x)
#endif

// Old Abseil defines these, with the same meaning, under the names that LevelDB uses too.
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef ACQUIRED_BEFORE
#undef ACQUIRED_AFTER
#undef NO_THREAD_SAFETY_ANALYSIS
#undef ASSERT_CAPABILITY

// Of a member: its mutex, and the mutex of the object behind a pointer.
#define GUARDED_BY(x) LANEWAY_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) LANEWAY_THREAD_ATTRIBUTE(pt_guarded_by(x))
// Of a mutex: it is locked before, or after, these.
#define ACQUIRED_BEFORE(...) LANEWAY_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) LANEWAY_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
// Of a function: its caller holds these, holds them at least shared, or does not hold them.
#define REQUIRES(...) LANEWAY_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) LANEWAY_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) LANEWAY_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// Of a function: its caller holds this mutex, in a way that the analysis does not see.
#define ASSERT_CAPABILITY(x) LANEWAY_THREAD_ATTRIBUTE(assert_capability(x))
// Of a function: it returns this mutex.
#define RETURN_CAPABILITY(x) LANEWAY_THREAD_ATTRIBUTE(lock_returned(x))
// Of a function that the analysis cannot follow; a comment beside it says why it is right.
#define NO_THREAD_SAFETY_ANALYSIS LANEWAY_THREAD_ATTRIBUTE(no_thread_safety_analysis)

// Of the classes and methods below, and of others that lock.
#define CAPABILITY(x) LANEWAY_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY LANEWAY_THREAD_ATTRIBUTE(scoped_lockable)
#define ACQUIRE(...) LANEWAY_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) LANEWAY_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) LANEWAY_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) LANEWAY_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) LANEWAY_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) LANEWAY_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))

namespace base {

// A std::mutex. Constructed at compile time, so it may be a global that no constructor runs for.
class CAPABILITY("mutex") Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  bool TryLock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // Tells the analysis that this thread holds the mutex, where it got here through a callback or an
  // interface that knows nothing of the mutex. Does nothing at run time.
  void AssertHeld() const ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex from its construction to its destruction, but for what lies between Unlock() and
// Lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_->Lock(); }
  // REQUIRES: this thread holds the mutex, by TryLock().
  MutexLock(Mutex* mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASE() {
    if (held_) mutex_->Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // REQUIRES: it is held.
  void Unlock() RELEASE() {
    mutex_->Unlock();
    held_ = false;
  }
  // REQUIRES: Unlock() was called since it was last held.
  void Lock() ACQUIRE() {
    mutex_->Lock();
    held_ = true;
  }

 private:
  Mutex* const mutex_;
  bool held_ = true;
};

// A std::condition_variable. Wakes for no reason at times: wait in a loop over the condition.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex* mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False: the time has come.
  template <class Clock, class Duration>
  bool WaitUntil(Mutex* mutex, const std::chrono::time_point<Clock, Duration>& time)
      REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, time);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// A std::shared_mutex: many readers, or one writer.
class CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  void LockShared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex* mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~WriterLock() RELEASE() { mutex_->Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex* mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_->LockShared();
  }
  ~ReaderLock() RELEASE_GENERIC() { mutex_->UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

}  // namespace base

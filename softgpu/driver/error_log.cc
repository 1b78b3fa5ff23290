#include "softgpu/driver/error_log.h"

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "base/cuda_log_file.h"
#include "base/mutex.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu {
namespace {

std::string Prefix(CUlogLevel level) {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char text[64];
  std::snprintf(text, sizeof text, "[%02d:%02d:%02d.%03d][%d][CUDA][%c] ", local.tm_hour,
                local.tm_min, local.tm_sec, static_cast<int>(now.tv_usec / 1000),
                static_cast<int>(getpid()), level == CU_LOG_LEVEL_ERROR ? 'E' : 'W');
  return text;
}

}  // namespace

ErrorLog& ErrorLog::Get() {
  static ErrorLog* const log = new ErrorLog;
  return *log;
}

void ErrorLog::Add(CUlogLevel level, std::string_view message) {
  std::string line = Prefix(level) + std::string(message);
  std::vector<std::pair<CUlogsCallback, void*>> callbacks;
  {
    base::MutexLock lock(&mutex_);
    entries_.push_back({next_index_++, line});
    if (entries_.size() > kEntriesMax) entries_.pop_front();
    for (const auto& [id, callback] : callbacks_) callbacks.push_back(callback);
    base::AppendToCudaLogFile(line);
  }
  for (const auto& [callback, data] : callbacks) callback(data, level, line.data(), line.size());
}

uint64_t ErrorLog::Register(CUlogsCallback callback, void* data) {
  base::MutexLock lock(&mutex_);
  callbacks_[next_callback_] = {callback, data};
  return next_callback_++;
}

bool ErrorLog::Unregister(uint64_t id) {
  base::MutexLock lock(&mutex_);
  return callbacks_.erase(id) != 0;
}

uint32_t ErrorLog::Current() {
  base::MutexLock lock(&mutex_);
  return next_index_;
}

std::string ErrorLog::Dump(CUlogIterator* from, size_t bytes_max) {
  base::MutexLock lock(&mutex_);
  std::string text;
  uint32_t next = from != nullptr ? *from : 0;
  for (const Entry& entry : entries_) {
    if (entry.index < next) continue;
    if (text.size() + entry.line.size() + 1 > bytes_max) break;
    text += entry.line;
    text += '\n';
    next = entry.index + 1;
  }
  if (from != nullptr) *from = next;
  return text;
}

CUresult Fail(CUresult code, std::string_view why) {
  const ThreadState& thread = ThreadState::Get();
  std::string message = thread.call != nullptr ? std::string(thread.call) + ": " : std::string();
  ErrorLog::Get().Add(CU_LOG_LEVEL_ERROR, message.append(why));
  return code;
}

CUresult FailAloud(CUresult code, std::string_view why, std::atomic<bool>* said) {
  if (!said->exchange(true)) {
    std::fprintf(stderr, "softgpu: %.*s\n", static_cast<int>(why.size()), why.data());
  }
  return Fail(code, why);
}

}  // namespace softgpu

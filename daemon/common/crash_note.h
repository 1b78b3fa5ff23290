// The note that a worker leaves when a signal ends it: it names the session whose work was running.
//
// The worker's signal handler writes the note to a file of the runtime directory, because a process
// that dies can do no more. lanewayd reads the note when the worker's pidfd says that the worker
// has ended. A lanewayd that started later can read it as well. Thread safety: functions of files,
// but for what says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace common {

struct CrashNote {
  uint64_t session_id = 0;
  uint64_t address = 0;  // that could not be touched
  int32_t signal = 0;
};

// Where worker `number` leaves its note.
std::string CrashNotePath(const std::string& runtime_dir, uint32_t number);

// From a signal handler. Nothing is said when the file cannot be written.
void LeaveCrashNote(const char* path, const CrashNote& note);

// Reads the note and removes it; nothing when there is none.
std::optional<CrashNote> TakeCrashNote(const std::string& path);

}  // namespace common

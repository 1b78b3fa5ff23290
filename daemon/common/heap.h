// The heap of a process that serves for weeks.
//
// glibc gives each new thread an arena of its own, up to eight per core, and an arena keeps what
// one busy moment needed. A worker's threads come and go with its sessions, so its memory would
// grow towards the sum of all arenas' busiest moments, with nothing of it in use. Thread safety:
// BoundHeap() before there is a second thread, TrimHeap() on any.
#pragma once

namespace common {

void BoundHeap();
// What is free goes back to the system: to be called when a session has ended.
void TrimHeap();

}  // namespace common

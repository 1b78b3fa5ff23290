#include "daemon/worker/session_teardown.h"

namespace worker {

// Callbacks use the session, and come after the streams' work.
void SessionTeardown::AwaitDevice() {
  drain_.WaitForStreams(&around_.held->streams);
  around_.notices->callbacks.Wait();
}

void SessionTeardown::DestroyObjects() {
  around_.iterations->Clear();
  around_.handlers->DestroyObjects();
}

void SessionTeardown::End() {
  around_.handlers->UseDevice(1);
  drain_.CutHeldStreams();
  AwaitDevice();
  drain_.Finish();
  DestroyObjects();
  around_.held->arena.Clear();
  around_.turn->LeaveBoard();
  around_.held->pinned.Detach();
  around_.file->LetGo();
}

void SessionTeardown::LeaveToSuccessor() {
  around_.handlers->UseDevice(1);
  around_.notices->callbacks.Wait();
  DestroyObjects();
  around_.held->arena.Detach();
  around_.turn->LeaveBoard();
  around_.held->pinned.Detach();
  around_.file->LetGo();
  drain_.Finish();
}

// Ranges that the program freed before count as given back for lanewayd.
void SessionTeardown::Reset() {
  AwaitDevice();
  (void)around_.held->frees.Poll();
  drain_.HoldAgain();
  DestroyObjects();
  around_.handlers->streams().times()->Clear(true);
  around_.lane->Exit();
  around_.held->arena.Clear();
}

}  // namespace worker

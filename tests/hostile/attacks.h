// The modes of hostile_client, a function for each. A function prints what its session got, a line
// for a fact, and returns the program's exit code: 0 when it came to its end, whatever the answers.
//
// A test and an attack take turns by lines: the attack prints "ready" and waits for a line, and
// "stop" is the end of its standard input. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/hostile/raw_client.h"

namespace hostile {

using Arguments = std::vector<std::string>;

// A session of the job that LANEWAY_JOB names; null after a line that says why there is none.
std::unique_ptr<RawClient> Enter();
// The same, with its first `bytes` of persistent memory.
std::unique_ptr<RawClient> EnterWithMemory(uint64_t bytes);

// Prints "ready" and waits for a line of standard input, or its end.
void AwaitGo();
bool ToldToStop();
void AwaitStop();

void PrintLoss(const RawClient& client);
// "NAME STATUS", or "NAME without a reply".
void PrintReply(const char* name, const Reply& reply);

// How many calls got which status.
class Tally {
 public:
  // False when no reply came.
  bool Count(const Reply& reply);
  // "NAME STATUS: so many" for each.
  void Print(const char* name) const;

 private:
  std::map<uint32_t, uint64_t> counts_;
  uint64_t silent_ = 0;
};

// --- lanes: each was inside once, and goes on from outside until it is told to stop
int Keep(const Arguments& arguments);
int Pin(const Arguments& arguments);  // once, or again
int WriteValue(const Arguments& arguments);
int Peek(const Arguments& arguments);

// --- memory
int Copy(const Arguments& arguments);
int Blas(const Arguments& arguments);  // steal, poke or crash; SLOT of another session
int Truncate(const Arguments& arguments);
int Many(const Arguments& arguments);  // streams, ending, events, graphs or memsets

// --- chunks
int Chunks(const Arguments& arguments);
int ChunkFlood(const Arguments& arguments);

// --- ends and hellos
int Hold(const Arguments& arguments);
int Wait(const Arguments& arguments);
int HostCall(const Arguments& arguments);  // TICKET that the stream waits for
int Spin(const Arguments& arguments);
int InProcess(const Arguments& arguments);  // SESSION of another program
int Job(const Arguments& arguments);        // number N, or forged TICKET

}  // namespace hostile

// The process that computes a language model, or one stage of several: a child of the front, with a
// socket on which plans of steps come and answers go (messages.h), and one to each neighbouring
// stage (hidden_channel.h, supervisor.h). It is an ordinary CUDA program, and each step is one
// iteration to Laneway. While it waits for another stage it is between two iterations, so a stage
// may wait for its turn on the device alone. It ends when the front closes the socket or ends, and
// when a step fails: the front then starts another engine.
//
// Thread safety: a process's main thread.
#pragma once

namespace serve::llm {

// Returns the process's exit code. `passed`: the first descriptor of a socket to a neighbour.
int RunEngine(int socket, int passed);

}  // namespace serve::llm

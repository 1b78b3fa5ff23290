// Loops as real programs have them, with laneway_iteration() at the place where a person would say
// that an iteration begins: the detector's labelled op streams are recorded from these (see
// tests/data/op_streams/README.md). The networks are small; their loops are not simplified.
//
//     loops NAME [ITERATIONS [hold]]
// "hold" keeps the session open until standard input ends.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "laneway.h"
#include "network.h"
#include "solvers.h"

// --- training ------------------------------------------------------------------------------------

// The loss is read back at the end of each step.
static void TrainReading(int steps) {
  Network network(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// The host waits once per epoch; the last batch is smaller.
static void TrainEpochs(int steps) {
  Network network(4, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(step % 12 == 11 ? 7 : 32);
    if (step % 12 == 11) network.Read();
  }
}

// Three validation batches after every ten steps, and weights saved after every thirty.
static void TrainValidating(int steps) {
  Network network(6, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
    for (int i = 0; i < 3 && step % 10 == 9; ++i) {
      laneway_iteration();
      network.Validate(16);
    }
    if (step % 30 == 29) network.SaveWeights();
  }
}

// One validation batch after every four steps, with memory of its own from the beginning.
static void TrainValidatingOften(int steps) {
  Network network(3, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
    if (step % 4 != 3) continue;
    laneway_iteration();
    network.Validate(32);
  }
}

// Gradients of several micro-batches, then one step of the optimizer: that is the iteration.
static void Accumulate(int steps, int parts, bool fresh, bool read_each) {
  Network network(4, 64, 32, fresh);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    for (int part = 0; part < parts; ++part) {
      network.Upload(16);
      network.Forward(network.layers());
      network.Backward();
      if (read_each) network.Read();
    }
    network.Step();
    network.ZeroGradients();
    network.Read();
  }
}

// Batches of any size, as sorted or padded sentences make them.
static void ChangingShapes(int steps) {
  Network network(5, 64, 64, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(8 + 8 * Random(7));
    network.Read();
  }
}

// Twelve equal layers in memory that is there from the beginning: layers repeat, too.
static void DeepPreallocated(int steps) {
  Network network(12, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// Two steps of one network, then one of the other: each is an iteration.
static void Adversaries(int steps) {
  Network critic(3, 64, 32, true), maker(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    Network& network = step % 3 == 2 ? maker : critic;
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
}

// Lengths of episodes differ; each is followed by a step of learning.
static void Episodes(int episodes) {
  Network policy(2, 64, 32, true), learner(4, 64, 64, true);
  for (int episode = 0; episode < episodes; ++episode) {
    for (int act = 0; act < 4 + Random(9); ++act) {
      laneway_iteration();
      policy.Validate(1);
    }
    laneway_iteration();
    learner.Train(64);
    learner.Read();
  }
}

// A step of a small network on what a large one answers: both belong to the iteration.
static void Distill(int steps) {
  Network teacher(7, 64, 32, true), student(3, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    teacher.Upload(32);
    teacher.Forward(teacher.layers());
    teacher.Measure(teacher.layers());
    student.Train(32);
    student.Read();
  }
}

// The network grows twice; between its sizes weights are saved and made anew.
static void Curriculum(int steps) {
  for (const int layers : {2, 4, 8}) {
    Network network(layers, 64, 32, true);
    for (int step = 0; step < steps / 3; ++step) {
      laneway_iteration();
      network.Train(32);
      network.Read();
    }
    network.SaveWeights();
  }
}

// Crops of three sizes; every sixteen steps an epoch ends with five validation batches and saved
// weights.
static void Segment(int steps) {
  Network network(7, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(8 << Random(3));
    network.Read();
    if (step % 16 != 15) continue;
    for (int i = 0; i < 5; ++i) {
      laneway_iteration();
      network.Validate(32);
    }
    network.SaveWeights();
  }
}

// Five micro-batches whose losses nobody reads before the step; a validation pass of two batches
// after every six steps.
static void AccumulateValidating(int steps) {
  Network network(3, 128, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    for (int part = 0; part < 5; ++part) {
      network.Upload(8);
      network.Forward(network.layers());
      network.Backward();
    }
    network.Step();
    network.ZeroGradients();
    network.Read();
    for (int i = 0; i < 2 && step % 6 == 5; ++i) {
      laneway_iteration();
      network.Validate(32);
    }
  }
}

// The loss is read before the gradients are made: the host waits where memory is high, and nowhere
// else.
static void TrainReadingFirst(int steps) {
  Network network(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Upload(32);
    network.Forward(network.layers());
    network.Score(network.layers());
    network.Read();
    network.Backward();
    network.Step();
    network.ZeroGradients();
  }
}

// A step of one network, a step of the other, and never two of the same.
static void TakeTurns(int steps) {
  Network one(3, 64, 32, true), other(5, 64, 32, true);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    Network& network = step % 2 == 0 ? one : other;
    network.Train(32);
    network.Read();
  }
}

// After the training a search of its own: launches in no order, and tables uploaded now and then,
// as batches were before. Nothing of it is an iteration.
static void TrainThenSearch(int steps) {
  constexpr int kBeforeTables = 6000, kTables = 8, kOfTable = 300;
  Network network(2, 64, 32, false);
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    network.Train(32);
    network.Read();
  }
  for (int i = 0; i < kBeforeTables + kTables * kOfTable; ++i) {
    if (i >= kBeforeTables && i % kOfTable == 0) network.Upload(32);
    const int move = Random(5);
    if (move == 0) network.Refine();
    if (move == 1) network.OneLayer(0);
    if (move == 2) network.OneLayer(1);
    if (move == 3) network.Score(2);
    if (move == 4) network.Backward();
  }
}

// --- answering -----------------------------------------------------------------------------------

// After each layer the host decides whether the answer is good enough.
static void EarlyExit(int requests) {
  Network network(8, 64, 8, false);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    network.Upload(8);
    network.Forward(2);
    const int exit = 3 + Random(6);
    for (int i = 2; i < exit && i < network.layers(); ++i) network.OneLayer(i);
    network.Measure(exit);
    network.Read();
  }
}

// Requests for two models in any order, in batches of any size.
static void TwoModels(int requests) {
  Network small(3, 64, 16, true), large(9, 64, 16, true);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    (Random(3) == 0 ? large : small).Validate(1 + Random(16));
  }
}

// Requests in batches; after every fifty the model is replaced by another one.
static void Replace(int requests) {
  for (int model = 0; model < 5; ++model) {
    Network network(4 + model % 2, 64, 16, false);
    for (int request = 0; request < requests / 5; ++request) {
      laneway_iteration();
      network.Validate(1 + Random(16));
    }
  }
}

// A prompt of any length, then tokens one by one: each of them is an iteration.
static void Generate(int requests) {
  Network network(6, 64, 64, false);
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    network.Validate(4 + Random(60));
    for (int token = 0; token < 6 + Random(20); ++token) {
      laneway_iteration();
      network.Validate(1);
    }
  }
}

// Two readings for each request, since the first decides how the answer is refined. Before the
// first one the last layers are warmed up, as they then work in every request.
static void AnswerRefining(int requests) {
  Network network(4, 64, 16, false);
  const auto finish = [&network] {
    network.Measure(network.layers());
    network.Read();
    network.Refine();
    network.Read();
  };
  network.Upload(16);
  for (int i = 2; i < network.layers(); ++i) network.OneLayer(i);
  finish();
  for (int request = 0; request < requests; ++request) {
    laneway_iteration();
    network.Upload(16);
    network.Forward(network.layers());
    finish();
  }
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 200;
  const auto is = [name](const char* word) { return std::strcmp(name, word) == 0; };
  if (is("train_reading")) {
    TrainReading(count);
  } else if (is("train_epochs")) {
    TrainEpochs(count);
  } else if (is("train_validating")) {
    TrainValidating(count);
  } else if (is("train_validating_often")) {
    TrainValidatingOften(count);
  } else if (is("accumulate_preallocated")) {
    Accumulate(count, 4, false, false);
  } else if (is("accumulate_fresh")) {
    Accumulate(count, 4, true, true);
  } else if (is("accumulate_many")) {
    Accumulate(count, 8, false, false);
  } else if (is("changing_shapes")) {
    ChangingShapes(count);
  } else if (is("deep_preallocated")) {
    DeepPreallocated(count);
  } else if (is("adversaries")) {
    Adversaries(count);
  } else if (is("segment")) {
    Segment(count);
  } else if (is("replace")) {
    Replace(count);
  } else if (is("distill")) {
    Distill(count);
  } else if (is("curriculum")) {
    Curriculum(count);
  } else if (is("accumulate_validating")) {
    AccumulateValidating(count);
  } else if (is("episodes")) {
    Episodes(count);
  } else if (is("early_exit")) {
    EarlyExit(count);
  } else if (is("two_models")) {
    TwoModels(count);
  } else if (is("generate")) {
    Generate(count);
  } else if (is("train_reading_first")) {
    TrainReadingFirst(count);
  } else if (is("take_turns")) {
    TakeTurns(count);
  } else if (is("train_then_search")) {
    TrainThenSearch(count);
  } else if (is("answer_refining")) {
    AnswerRefining(count);
  } else if (is("factorize")) {
    Factorize(count / 4);
  } else if (is("simulate")) {
    Simulate(count);
  } else {
    std::fprintf(stderr, "usage: loops NAME [ITERATIONS]\n");
    return 2;
  }
  CHECK(cudaDeviceSynchronize());
  if (argc > 3) {
    std::puts("done");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  }
  return 0;
}

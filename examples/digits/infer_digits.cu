// Answers requests, one digit each, as a server does: copy in, forward, copy out, synchronise.
// Prints the accuracy and the latency percentiles. Loads the weights that `train_digits --save`
// wrote, or trains for a few epochs first. With --pause-every it prints the time of every so many
// requests and waits for a line of standard input: who compares two runs can take turns.
#include <algorithm>
#include <utility>

#include "digits/flags.h"
#include "digits/mlp.h"

static double Percentile(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

static void PrintLatencies(std::vector<double> latencies_us) {
  std::sort(latencies_us.begin(), latencies_us.end());
  std::printf("time: latency p50 %.1f us, p90 %.1f us, p99 %.1f us, max %.1f us\n",
              Percentile(latencies_us, 0.5), Percentile(latencies_us, 0.9),
              Percentile(latencies_us, 0.99), latencies_us.back());
}

// One request: `pixels` and `logits` are pinned host memory.
static int Answer(Mlp* mlp, const float* pixels, float* device_pixels, float* logits) {
  CUDA_CHECK(cudaMemcpyAsync(device_pixels, pixels, Digits::kPixels * sizeof(float),
                             cudaMemcpyHostToDevice, mlp->stream()));
  const float* output = mlp->Forward(device_pixels, 1);
  CUDA_CHECK(cudaMemcpyAsync(logits, output, Digits::kClasses * sizeof(float),
                             cudaMemcpyDeviceToHost, mlp->stream()));
  CUDA_CHECK(cudaStreamSynchronize(mlp->stream()));
  return static_cast<int>(std::max_element(logits, logits + Digits::kClasses) - logits);
}

int main(int argc, char** argv) {
  int requests = 1000, pause_every = 0;
  uint64_t seed = 1;
  std::string data = DefaultDigitsPath(), weights;
  Flags flags(argc, argv,
              "infer_digits [--requests N] [--seed N] [--data FILE] [--weights FILE] "
              "[--pause-every N]");
  while (flags.Next()) {
    if (flags.Is("--requests")) {
      requests = static_cast<int>(flags.Number(1, 100000000));
    } else if (flags.Is("--seed")) {
      seed = static_cast<uint64_t>(flags.Number(0, 1000000000));
    } else if (flags.Is("--data")) {
      data = flags.Text();
    } else if (flags.Is("--weights")) {
      weights = flags.Text();
    } else if (flags.Is("--pause-every")) {
      pause_every = static_cast<int>(flags.Number(1, 1000000));
    } else {
      flags.Refuse();
    }
  }

  const Dataset dataset = ReadDigits(data);
  TrainOptions options;
  options.epochs = 5;
  options.seed = seed;
  options.verbose = false;
  Mlp mlp(options.batch, seed);
  if (weights.empty()) {
    TrainEpochs(&mlp, dataset.train, options);
  } else if (!mlp.Load(weights)) {
    std::fprintf(stderr, "%s: not a file that train_digits --save wrote\n", weights.c_str());
    return 1;
  }

  float *pixels = nullptr, *logits = nullptr;
  CUDA_CHECK(cudaMallocHost(&pixels, Digits::kPixels * sizeof(float)));
  CUDA_CHECK(cudaMallocHost(&logits, Digits::kClasses * sizeof(float)));
  DeviceBuffer<float> device_pixels(Digits::kPixels);
  std::vector<double> latencies_us;
  int right = 0, since_pause = 0;
  double resumed_ms = NowMs();
  for (int i = 0; i < requests; ++i) {
    const int row = i % dataset.test.rows();
    const double begin_ms = NowMs();
    std::copy_n(dataset.test.images.begin() + row * Digits::kPixels, Digits::kPixels, pixels);
    right += Answer(&mlp, pixels, device_pixels.get(), logits) == dataset.test.labels[row];
    latencies_us.push_back((NowMs() - begin_ms) * 1000);
    if (++since_pause == pause_every) Pause(std::exchange(since_pause, 0), &resumed_ms);
  }
  std::printf("infer_digits: %d requests, %d right (%.2f %%)\n", requests, right,
              100.0 * right / requests);
  PrintLatencies(latencies_us);
  CUDA_CHECK(cudaFreeHost(pixels));
  CUDA_CHECK(cudaFreeHost(logits));
  return 0;
}

// Trains a small network to read handwritten digits. Prints the loss of every epoch and the
// accuracy on the test rows.
#include "digits/flags.h"
#include "digits/mlp.h"

int main(int argc, char** argv) {
  TrainOptions options;
  std::string data = DefaultDigitsPath(), save;
  Flags flags(argc, argv,
              "train_digits [--epochs N] [--batch N] [--seed N] [--data FILE] [--save FILE] "
              "[--pause-every N]");
  while (flags.Next()) {
    if (flags.Is("--epochs")) {
      options.epochs = static_cast<int>(flags.Number(1, 1000000));
    } else if (flags.Is("--batch")) {
      options.batch = static_cast<int>(flags.Number(1, 1000));
    } else if (flags.Is("--seed")) {
      options.seed = static_cast<uint64_t>(flags.Number(0, 1000000000));
    } else if (flags.Is("--data")) {
      data = flags.Text();
    } else if (flags.Is("--save")) {
      save = flags.Text();
    } else if (flags.Is("--pause-every")) {
      options.pause_every = static_cast<int>(flags.Number(1, 1000000));
    } else {
      flags.Refuse();
    }
  }

  const Dataset dataset = ReadDigits(data);
  std::printf("train_digits: %d training rows, %d test rows\n", dataset.train.rows(),
              dataset.test.rows());
  Mlp mlp(options.batch, options.seed);
  const double begin_ms = NowMs();
  TrainEpochs(&mlp, dataset.train, options);
  std::printf("time: training %.3f ms\n", NowMs() - begin_ms);

  std::printf("test accuracy %.2f %%\n", AccuracyPercent(&mlp, dataset.test));
  std::printf("weights %016llx\n", static_cast<unsigned long long>(Fingerprint(mlp.Parameters())));
  if (!save.empty() && !mlp.Save(save)) {
    std::fprintf(stderr, "%s: cannot be written\n", save.c_str());
    return 1;
  }
  return 0;
}

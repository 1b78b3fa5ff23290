#!/usr/bin/env python3
"""Trains a small convolutional network on the handwritten digits with tinygrad, then answers requests with it.

    DEV=CUDA python digits_tinygrad.py [--epochs N] [--seed N] [--requests N] [--data FILE] [--pause-every N]

With --pause-every it waits for a line of standard input after every N batches or requests, so that one who compares two
runs can take turns with them. Standard output is the same in every run on the same kind of device; lines with times
start with "time:".
"""
import argparse
import csv
import gzip
import pathlib
import random
import sys
import time

from tinygrad import Context, Tensor, TinyJit, nn

PIXELS = 64
BATCH = 48


def find_data():
    """The file lies in examples/data, in the build tree's share/ or in an installation's."""
    here = pathlib.Path(__file__).resolve().parent
    for directory in (here.parent / "data", here.parent.parent / "laneway" / "data"):
        if (directory / "digits.csv.gz").exists():
            return directory / "digits.csv.gz"
    raise SystemExit("digits.csv.gz not found: name it with --data")


def read_digits(path):
    """Returns (images, labels) of the training rows and of the test rows: every fifth row tests."""
    train, test = ([], []), ([], [])
    with gzip.open(path, "rt") as file:
        for index, row in enumerate(csv.reader(file)):
            images, labels = test if index % 5 == 0 else train
            images.append([float(value) / 16 for value in row[:PIXELS]])
            labels.append(int(row[PIXELS]))
    return train, test


class Turns:
    """Tells the time of every N steps, and waits for a line before the next ones. Without N it does nothing."""

    def __init__(self, every):
        self.every, self.steps, self.resumed = every, 0, time.perf_counter()

    def step(self):
        self.steps += 1
        if self.steps == self.every:
            print(f"time: {self.steps} batches {1000 * (time.perf_counter() - self.resumed):.3f} ms", flush=True)
            sys.stdin.readline()
            self.steps, self.resumed = 0, time.perf_counter()


class Network:
    def __init__(self):
        self.first = nn.Conv2d(1, 8, 3)
        self.second = nn.Conv2d(8, 16, 3)
        self.last = nn.Linear(256, 10)

    def __call__(self, x):
        x = self.first(x.reshape(-1, 1, 8, 8)).relu()
        return self.last(self.second(x).relu().flatten(1))


def train(network, images, labels, epochs, seed, pause_every):
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.003)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    order = list(range(len(images)))
    turns = Turns(pause_every)
    shuffle = random.Random(seed)
    with Context(TRAINING=1):
        for epoch in range(epochs):
            shuffle.shuffle(order)
            losses, begin = [], time.perf_counter()
            for start in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[start:start + BATCH]
                x = Tensor([images[row] for row in rows]).realize()
                y = Tensor([labels[row] for row in rows]).realize()
                losses.append(step(x, y).item())
                turns.step()
            print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.9f}", flush=True)
            print(f"time: epoch {epoch + 1} {time.perf_counter() - begin:.3f} s", flush=True)


def answer(network, images, labels, requests, pause_every):
    """Classifies one image per request; returns how many were right and the sorted latencies in milliseconds."""
    forward = TinyJit(lambda x: network(x).argmax(axis=1).realize())
    right, latencies_ms, turns = 0, [], Turns(pause_every)
    for request in range(requests):
        row = request % len(images)
        begin = time.perf_counter()
        right += forward(Tensor([images[row]]).realize()).item() == labels[row]
        latencies_ms.append((time.perf_counter() - begin) * 1000)
        turns.step()
    return right, sorted(latencies_ms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--pause-every", type=int)
    arguments = parser.parse_args()

    (images, labels), (test_images, test_labels) = read_digits(arguments.data or find_data())
    Tensor.manual_seed(arguments.seed)
    network = Network()
    begin = time.perf_counter()
    train(network, images, labels, arguments.epochs, arguments.seed, arguments.pause_every)
    print(f"time: training {time.perf_counter() - begin:.3f} s")

    classes = network(Tensor(test_images)).argmax(axis=1).tolist()
    right = sum(a == b for a, b in zip(classes, test_labels))
    print(f"test accuracy {100 * right / len(test_labels):.2f} %")
    right, latencies_ms = answer(network, test_images, test_labels, arguments.requests, arguments.pause_every)
    print(f"{arguments.requests} requests, {right} right")
    print(f"time: latency p50 {latencies_ms[len(latencies_ms) // 2]:.2f} ms, max {latencies_ms[-1]:.2f} ms")


if __name__ == "__main__":
    main()

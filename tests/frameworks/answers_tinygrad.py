#!/usr/bin/env python3
"""Answers requests with the digits network of the examples, untrained, and prints the last requests and answers.

    DEV=CUDA python answers_tinygrad.py [REQUESTS]
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
from digits_tinygrad import PIXELS, Network  # noqa: E402
from tinygrad import Tensor, TinyJit  # noqa: E402

PRINTED = 8


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    Tensor.manual_seed(1)
    network = Network()
    forward = TinyJit(lambda x: network(x).realize())
    for request in range(requests):
        image = [(request * 7 + pixel * 3) % 17 / 16 for pixel in range(PIXELS)]
        logits = forward(Tensor([image]).realize()).tolist()[0]
        if request >= requests - PRINTED:
            print("request", struct.pack(f"{PIXELS}f", *image).hex())
            print("answer", struct.pack("10f", *logits).hex())


if __name__ == "__main__":
    main()

"""A network of eight branches of seven layers, asked again and again: some sixty kernels an iteration, most of them
independent of each other. Prints the bits of the answers, which must be the same wherever the network runs. With a
number it is asked so often.
"""
import hashlib
import os
import sys

os.environ.setdefault("JIT", "2")  # its kernels are launched one by one
import numpy as np  # noqa: E402
from tinygrad import Device, Tensor, TinyJit  # noqa: E402 (reads the environment when imported)

BRANCHES, LAYERS, WIDTH = 8, 7, 32
ITERATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 60

random = np.random.default_rng(3)
layers = [[Tensor((random.random((WIDTH, WIDTH)) - 0.5).astype(np.float32)).realize() for _ in range(LAYERS)]
          for _ in range(BRANCHES)]


@TinyJit
def answer(x):
    total = None
    for branch in layers:
        y = x
        for weights in branch:
            y = (y @ weights).relu().contiguous()
        total = y if total is None else total + y
    return total.realize()


def main():
    print("device", Device.DEFAULT)
    digest = hashlib.sha256()
    for iteration in range(ITERATIONS):
        x = Tensor(random.random((4, WIDTH)).astype(np.float32)).realize()
        bits = answer(x).numpy().tobytes()
        digest.update(bits)
        if iteration % 10 == 9:
            print(iteration + 1, digest.hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()

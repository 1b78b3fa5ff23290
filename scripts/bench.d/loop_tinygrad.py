"""A training loop in tinygrad whose memory is worth counting: 2 x 4 MiB of parameters and targets stay, six tensors of
4 MiB are born and die in every step. Prints a line when it begins to iterate, and goes on until it is ended.
"""
from tinygrad import Tensor

COUNT = 1 << 20  # of floats
RATE = 1e-3


def step(weights, targets):
    """One step of gradient descent on sin(2 w) = t for every element; what it makes dies with it."""
    doubled = (weights * 2).realize()
    outputs = doubled.sin().realize()
    errors = (outputs - targets).realize()
    slopes = doubled.cos().realize()
    gradients = (errors * slopes).realize()
    steps = (gradients * RATE).realize()
    weights.assign(weights - steps).realize()
    return (errors * errors).sum().item()


def main():
    weights, targets = Tensor.rand(COUNT).realize(), Tensor.rand(COUNT).realize()
    while True:
        step(weights, targets)


if __name__ == "__main__":
    main()

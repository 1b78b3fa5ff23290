"""A small network, trained with tinygrad's CUDA graphs and without: the losses must be the same."""
import numpy as np
from networks_tinygrad import losses_of, same_start
from tinygrad import Context, Device, nn
from tinygrad.runtime.graph.cuda import CUDAGraph

STEPS, WIDTH, CLASSES = 8, 16, 4
launches = 0


class Network:
    def __init__(self):
        self.first, self.last = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, CLASSES)

    def __call__(self, x):
        return self.last(self.first(x).relu())


def counted(graph, *arguments, launch=CUDAGraph.__call__, **options):
    global launches
    launches += 1
    return launch(graph, *arguments, **options)


def train():
    random = np.random.default_rng(5)
    model = Network()
    same_start(model, 6)
    inputs = random.random((STEPS, 8, WIDTH)).astype(np.float32)
    wanted = random.integers(0, CLASSES, (STEPS, 8)).astype(np.int32)
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1, momentum=0.9)
    return losses_of(model, inputs, wanted, optimizer)


def main():
    CUDAGraph.__call__ = counted
    with Context(JIT=1):
        losses = train()
    print("device", Device.DEFAULT, "launches", launches)
    if launches == 0:
        print("DIFFERS: no graph was launched")
    with Context(JIT=2):
        without = train()
    print("agrees" if losses == without else f"DIFFERS from {without}", " ".join(f"{loss:.9f}" for loss in losses))


if __name__ == "__main__":
    main()

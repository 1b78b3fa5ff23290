"""Loops of tinygrad programs, with laneway_iteration() where an iteration begins (loops.cu says more).

    DEV=CUDA JIT=2 python loops_tinygrad.py NAME [ITERATIONS]

JIT=2 replays kernels one by one. JIT=1, tinygrad's default, replays them as CUDA graphs.
"""
import ctypes
import os
import random
import sys

os.environ.setdefault("JIT", "2")
from tinygrad import Context, Tensor, TinyJit, nn  # noqa: E402 (reads the environment when imported)

iteration = getattr(ctypes.CDLL(None), "laneway_iteration", lambda: None)


class Network:
    def __init__(self):
        self.first, self.second, self.last = nn.Linear(64, 96), nn.Linear(96, 48), nn.Linear(48, 10)

    def __call__(self, x):
        return self.last(self.second(self.first(x).relu()).relu())


def batch(rows):
    x = Tensor([[random.random() for _ in range(64)] for _ in range(rows)]).realize()
    y = Tensor([random.randrange(10) for _ in range(rows)]).realize()
    return x, y


def trainer(network):
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.003)

    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())
    return step


def train(count, validate_every=0, jit=True, sizes=(32,)):
    network = Network()
    step = trainer(network)
    step = TinyJit(step) if jit else step
    forward = TinyJit(lambda x: network(x).argmax(axis=1).realize())
    with Context(TRAINING=1):
        for number in range(count):
            iteration()
            step(*batch(random.choice(sizes))).item()
            for _ in range(2 if validate_every and number % validate_every == validate_every - 1 else 0):
                iteration()
                forward(batch(24)[0]).tolist()


def answer(count):
    network = Network()
    forward = TinyJit(lambda x: network(x).argmax(axis=1).realize())
    for _ in range(count):
        iteration()
        forward(batch(1)[0]).item()


def tokens(count):
    """Requests: a prompt, whose kernels are not replayed, and then tokens one by one."""
    network = Network()
    token = TinyJit(lambda x: network(x).argmax(axis=1).realize())
    for _ in range(count // 6):
        iteration()
        network(batch(12)[0]).argmax(axis=1).tolist()
        for _ in range(random.randrange(6, 18)):
            iteration()
            token(batch(1)[0]).item()


def adversaries(count):
    """Two steps of one network, then one of the other."""
    critic, maker = (TinyJit(trainer(Network())) for _ in range(2))
    with Context(TRAINING=1):
        for number in range(count):
            iteration()
            (maker if number % 3 == 2 else critic)(*batch(16 if number % 3 == 2 else 32)).item()


def distill(count):
    """A step of one network on what another one answers."""
    teacher, student = Network(), Network()
    answers, step = TinyJit(lambda x: teacher(x).argmax(axis=1).realize()), TinyJit(trainer(student))
    with Context(TRAINING=1):
        for _ in range(count):
            iteration()
            x, _ = batch(32)
            step(x, answers(x)).item()


def accumulate(count):
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.003)

    def gradients(x, y):
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*[parameter.grad for parameter in optimizer.params])

    with Context(TRAINING=1):
        for _ in range(count):
            iteration()
            optimizer.zero_grad()
            for _ in range(3):
                loss = gradients(*batch(16))
            optimizer.step()
            loss.item()


def main():
    name, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    random.seed(7)
    Tensor.manual_seed(7)
    loops = {"train": lambda: train(count), "validate": lambda: train(count, validate_every=8),
             "eager": lambda: train(count, jit=False), "shapes": lambda: train(count, jit=False, sizes=(8, 16, 32)),
             "answer": lambda: answer(count), "accumulate": lambda: accumulate(count),
             "tokens": lambda: tokens(count), "adversaries": lambda: adversaries(count),
             "distill": lambda: distill(count)}
    loops[name]()


if __name__ == "__main__":
    main()

"""A convolutional network for images of 28 x 28 and a small transformer, trained and asked on the device and on tinygrad's
processor backend: losses and answers must agree. The device's are printed, to be compared between runs. The backend
compiles for long, so what it found is kept in $XDG_CACHE_HOME for the next run."""
import hashlib
import os
import pathlib
import pickle

os.environ.setdefault("JIT", "2")
import numpy as np  # noqa: E402
from tinygrad import Context, Device, Tensor, TinyJit, dtypes, nn  # noqa: E402 (reads the environment when imported)

STEPS = 4  # the first two are recorded, the others replayed
TOLERANCE = 2e-4


class ConvNet:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 4, 5), nn.Conv2d(4, 8, 3)
        self.normal = nn.BatchNorm(4)
        self.last = nn.Linear(8 * 5 * 5, 10)

    def __call__(self, x):
        x = self.normal(self.first(x)).relu().max_pool2d((2, 2))
        return self.last(self.second(x).relu().max_pool2d((2, 2)).flatten(1))


class Transformer:
    """Characters, two blocks of causal attention, one head each of eight."""

    TOKENS, WIDTH, LENGTH, HEADS = 16, 16, 12, 2

    class Block:
        def __init__(self, width, heads):
            self.heads = heads
            self.inward, self.outward = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def __call__(self, x):
            batch, length, width = x.shape
            parts = self.inward(self.before(x)).reshape(batch, length, 3, self.heads, width // self.heads)
            q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
            seen = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
            x = x + self.outward(seen)
            return x + self.down(self.up(self.after(x)).gelu())

    def __init__(self):
        self.tokens, self.places = nn.Embedding(self.TOKENS, self.WIDTH), nn.Embedding(self.LENGTH, self.WIDTH)
        self.blocks = [self.Block(self.WIDTH, self.HEADS) for _ in range(2)]
        self.last, self.out = nn.LayerNorm(self.WIDTH), nn.Linear(self.WIDTH, self.TOKENS, bias=False)

    def __call__(self, x):
        y = self.tokens(x) + self.places(Tensor.arange(x.shape[1]).reshape(1, -1))
        for block in self.blocks:
            y = block(y)
        return self.out(self.last(y))


def same_start(model, seed):
    """Parameters that do not depend on the device's random numbers."""
    random = np.random.default_rng(seed)
    for name, parameter in nn.state.get_state_dict(model).items():
        if parameter.dtype == dtypes.float and "normal" not in name:
            parameter.assign(Tensor((random.standard_normal(parameter.shape) * 0.2).astype(np.float32)))
            parameter.realize()


def losses_of(model, inputs, wanted, optimizer):
    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        return [step(Tensor(x).realize(), Tensor(y).realize()).item() for x, y in zip(inputs, wanted)]


def convnet():
    random = np.random.default_rng(1)
    model = ConvNet()
    same_start(model, 2)
    images = random.random((STEPS, 8, 1, 28, 28)).astype(np.float32)
    labels = random.integers(0, 10, (STEPS, 8)).astype(np.int32)
    losses = losses_of(model, images, labels, nn.optim.SGD(nn.state.get_parameters(model), lr=0.05, momentum=0.9))
    return losses, model(Tensor(images[0, :3])).softmax().numpy()


def transformer():
    random = np.random.default_rng(3)
    model = Transformer()
    same_start(model, 4)
    text = random.integers(0, model.TOKENS, (STEPS, 4, model.LENGTH + 1)).astype(np.int32)
    losses = losses_of(model, text[:, :, :-1], text[:, :, 1:], nn.optim.SGD(nn.state.get_parameters(model), lr=0.1))
    return losses, model(Tensor(text[0, :2, :-1])).softmax().numpy()


def reference(network):
    cache = os.environ.get("XDG_CACHE_HOME")
    path = cache and pathlib.Path(cache) / f"{network.__name__}.reference"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    with Context(DEV="CPU"):
        expected = network()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(expected))
    return expected


def main():
    device = Device.DEFAULT
    print("device", device)
    for network in (convnet, transformer):
        losses, answers = network()
        expected_losses, expected_answers = reference(network)
        agree = np.allclose(losses, expected_losses, rtol=TOLERANCE) and np.allclose(
            answers, expected_answers, rtol=TOLERANCE, atol=TOLERANCE)
        print(network.__name__, "agrees" if agree else f"DIFFERS from {expected_losses}",
              " ".join(f"{loss:.6f}" for loss in losses), hashlib.sha256(answers.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()

"""Trains a network by PyTorch with torch.compile on the device, and on the processor without it: one line per step.

    training_torch.py mlp|transformer

A step is one compiled function of parameters and a batch: its gradients, its loss and the updated parameters. Eagerly
PyTorch's kernels are machine code, which the software GPU refuses; numbers that start a training come from the host.
"""
import hashlib
import math
import os
import sys

# Kernels that a run compiles serve the next ones of the same test, and nobody else's.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.environ["XDG_CACHE_HOME"], "inductor"))
os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(os.environ["XDG_CACHE_HOME"], "triton"))
import torch  # noqa: E402
import torch._inductor.config  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch._inductor.config.joint_graph_constant_folding = False  # it fills tensors eagerly
torch.set_num_threads(1)
STEPS = 20
TOLERANCE = 1e-5
VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 64, 64, 4, 32, 8


def weights(*shape):
    return torch.randn(*shape) / math.sqrt(shape[0])


class Mlp:
    """Classes of points by three layers."""

    rate = 0.1

    def parameters(self):
        return {"in": weights(32, 256), "in_bias": torch.zeros(256), "middle": weights(256, 256),
                "middle_bias": torch.zeros(256), "out": weights(256, 10)}

    def batch(self):
        return torch.randn(128, 32), torch.randint(0, 10, (128,))

    def loss(self, p, x, y):
        x = torch.relu(x @ p["in"] + p["in_bias"])
        x = F.gelu(x @ p["middle"] + p["middle_bias"])
        return F.cross_entropy(x @ p["out"], y)


class Transformer:
    """Two blocks that predict the next token: causal attention, layer norms, embeddings."""

    rate = 0.2

    def parameters(self):
        p = {"embed": torch.randn(VOCABULARY, WIDTH) * 0.1, "place": torch.randn(LENGTH, WIDTH) * 0.1,
             "out": weights(WIDTH, VOCABULARY)}
        for block in "ab":
            p |= {block + "_qkv": weights(WIDTH, 3 * WIDTH), block + "_joined": weights(WIDTH, WIDTH),
                  block + "_up": weights(WIDTH, 4 * WIDTH), block + "_down": weights(4 * WIDTH, WIDTH)}
            for norm in "12":
                p |= {block + "_scale" + norm: torch.ones(WIDTH), block + "_shift" + norm: torch.zeros(WIDTH)}
        return p

    def batch(self):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1))
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), mask

    def block(self, p, name, x, mask):
        y = F.layer_norm(x, (WIDTH,), p[name + "_scale1"], p[name + "_shift1"])
        q, k, v = (y @ p[name + "_qkv"]).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask, -1)
        x = x + (attention @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ p[name + "_joined"]
        y = F.layer_norm(x, (WIDTH,), p[name + "_scale2"], p[name + "_shift2"])
        return x + F.gelu(y @ p[name + "_up"]) @ p[name + "_down"]

    def loss(self, p, tokens, following, mask):
        x = p["embed"][tokens] + p["place"]
        for name in "ab":
            x = self.block(p, name, x, mask)
        return F.cross_entropy((x @ p["out"]).view(-1, VOCABULARY), following.view(-1))


def train(network, device):
    """The losses, and what the parameters are at the end."""
    torch.manual_seed(5)
    parameters = {name: value.to(device) for name, value in network.parameters().items()}
    batch = [value.to(device) for value in network.batch()]

    def step(parameters, *batch):
        gradients, loss = torch.func.grad_and_value(network.loss)(parameters, *batch)
        return {name: value - network.rate * gradients[name] for name, value in parameters.items()}, loss

    if device == "cuda":
        step = torch.compile(step)
    losses = []
    for _ in range(STEPS):
        parameters, loss = step(parameters, *batch)
        losses.append(loss.item())
    return losses, {name: value.cpu() for name, value in parameters.items()}


def main():
    network = {"mlp": Mlp, "transformer": Transformer}[sys.argv[1]]()
    expected, _ = train(network, "cpu")
    losses, parameters = train(network, "cuda")
    print("parameters", sum(value.numel() for value in parameters.values()))
    for step, (got, reference) in enumerate(zip(losses, expected)):
        print("step", step, repr(got), "agrees" if abs(got - reference) <= TOLERANCE else f"DIFFERS from {reference!r}")
    learns = losses[-1] < losses[0] * 0.9
    print("it learns" if learns else "the loss DIFFERS from one that falls")
    for name, value in parameters.items():
        print(name, hashlib.sha256(value.numpy().tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    main()

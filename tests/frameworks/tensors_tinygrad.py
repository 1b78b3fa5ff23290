"""tinygrad's operations on the device against NumPy's: one line per operation, and the tensors' own bits."""
import hashlib
import os

os.environ.setdefault("JIT", "2")
import numpy as np  # noqa: E402
from tinygrad import Device, Tensor, TinyJit, dtypes  # noqa: E402 (reads the environment when imported)

random = np.random.default_rng(5)
a, b = (random.standard_normal((37, 53)).astype(np.float32) for _ in range(2))
positive = np.abs(a) + 0.1
square = random.standard_normal((64, 64)).astype(np.float32)
image = random.standard_normal((2, 3, 12, 12)).astype(np.float32)
weight = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
integers = random.integers(-1000, 1000, (100,), dtype=np.int32)


def softmax(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def convolution(x, w):
    out = np.zeros((x.shape[0], w.shape[0], x.shape[2] - 2, x.shape[3] - 2), np.float32)
    for row in range(3):
        for column in range(3):
            window = x[:, :, row:row + out.shape[2], column:column + out.shape[3]]
            out += np.einsum("ncij,oc->noij", window, w[:, :, row, column])
    return out


T = Tensor
OPERATIONS = [
    ("add", lambda: T(a) + T(b), lambda: a + b),
    ("multiply", lambda: T(a) * T(b), lambda: a * b),
    ("divide", lambda: T(a) / T(positive), lambda: a / positive),
    ("where", lambda: (T(a) > T(b)).where(T(a), T(b) * 2), lambda: np.where(a > b, a, b * 2)),
    ("exp", lambda: T(a).exp(), lambda: np.exp(a)),
    ("log", lambda: T(positive).log(), lambda: np.log(positive)),
    ("sqrt", lambda: T(positive).sqrt(), lambda: np.sqrt(positive)),
    ("sin", lambda: T(a).sin(), lambda: np.sin(a)),
    ("tanh", lambda: T(a).tanh(), lambda: np.tanh(a)),
    ("sum", lambda: T(a).sum(), lambda: a.sum()),
    ("sum of rows", lambda: T(a).sum(axis=1), lambda: a.sum(axis=1)),
    ("largest of columns", lambda: T(a).max(axis=0), lambda: a.max(axis=0)),
    ("argmax", lambda: T(a).argmax(axis=1), lambda: a.argmax(axis=1)),
    ("softmax", lambda: T(a).softmax(axis=1), lambda: softmax(a)),
    ("matrix product", lambda: T(square) @ T(square), lambda: square @ square),
    ("transposed product", lambda: T(a) @ T(b).transpose(), lambda: a @ b.T),
    ("convolution", lambda: T(image).conv2d(T(weight)), lambda: convolution(image, weight)),
    ("cumulative sum", lambda: T(a).cumsum(axis=1), lambda: np.cumsum(a, axis=1)),
    ("slice and pad", lambda: T(a)[3:20:2, 5:].pad(((1, 2), (0, 3))),
     lambda: np.pad(a[3:20:2, 5:], ((1, 2), (0, 3)))),
    ("concatenate", lambda: T(a).cat(T(b), dim=1), lambda: np.concatenate([a, b], axis=1)),
    ("integers", lambda: T(integers) * 7 // 3, lambda: integers * 7 // 3),
    ("shifts", lambda: (T(integers) << 3) ^ 0x55, lambda: (integers << 3) ^ 0x55),
    ("half", lambda: (T(a).cast(dtypes.half) * 2).cast(dtypes.float),
     lambda: (a.astype(np.float16) * np.float16(2)).astype(np.float32)),
    ("double", lambda: T(a).cast(dtypes.double).sum(), lambda: a.astype(np.float64).sum()),
    ("sort", lambda: T(integers).sort()[0], lambda: np.sort(integers)),
]


def main():
    print("device", Device.DEFAULT)
    for name, on_device, on_host in OPERATIONS:
        got, expected = on_device().numpy(), np.asarray(on_host())
        agree = got.shape == expected.shape and np.allclose(got, expected, rtol=2e-4, atol=2e-4)
        print(name, "agrees" if agree else "DIFFERS", hashlib.sha256(got.tobytes()).hexdigest()[:16], flush=True)

    step = TinyJit(lambda x: (x * 2 + 1).sum(axis=1).realize())
    for round_number in range(4):  # the third call and later ones are replayed
        got = step(Tensor(a + round_number).realize()).numpy()
        agree = np.allclose(got, ((a + round_number) * 2 + 1).sum(axis=1), rtol=1e-4, atol=1e-3)
        print("replay", round_number, "agrees" if agree else "DIFFERS")


if __name__ == "__main__":
    main()

"""Dr.Jit's CUDA backend: arithmetic, gathers, scatters, reductions, loops, calls and derivatives, against NumPy."""
import drjit as dr
import numpy as np
from drjit.cuda import Float, UInt
from drjit.cuda.ad import Float as ADFloat

COUNT = 10_000


def check(name, result, expected):
    result = np.asarray(result)
    same = np.array_equal(result, expected) if result.dtype.kind in "iu" else np.allclose(result, expected, rtol=1e-4)
    print(f"{name}: {'agrees' if same else 'DIFFERS'}, {result.astype(np.float64).sum():.6g}", flush=True)


@dr.syntax
def collatz(value):
    steps = UInt(0)
    while value > 1:
        value = dr.select(value % 2 == 0, value // 2, 3 * value + 1)
        steps += 1
    return steps


def collatz_of(value):
    steps = 0
    while value > 1:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        steps += 1
    return steps


def main():
    random = np.random.default_rng(1)
    host = random.random(COUNT, np.float32)
    x = Float(host)
    check("arithmetic", dr.fma(x, x, dr.sqrt(x)) + dr.sin(x), host * host + np.sqrt(host) + np.sin(host))
    indices = random.permutation(COUNT).astype(np.uint32)
    check("gather", dr.gather(Float, x, UInt(indices)), host[indices])
    target = dr.zeros(UInt, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, target, UInt(1), UInt(indices % 16))
    check("scatter", target, np.bincount(indices % 16, minlength=16).astype(np.uint32))
    check("sum", dr.sum(x), np.array([host.sum(dtype=np.float64)]))
    check("minimum", dr.min(x), np.array([host.min()]))
    check("prefix sum", dr.cumsum(UInt(indices % 7)), np.cumsum(indices % 7).astype(np.uint32))
    check("block sum", dr.block_sum(UInt(indices), 100), indices.reshape(-1, 100).sum(axis=1).astype(np.uint32))
    check("loop", collatz(dr.arange(UInt, 1, 300)), np.array([collatz_of(n) for n in range(1, 300)], np.uint32))
    variable = ADFloat(host[:1000])
    dr.enable_grad(variable)
    dr.backward(dr.sum(dr.sin(variable) * variable))
    check("gradient", dr.grad(variable), np.cos(host[:1000]) * host[:1000] + np.sin(host[:1000]))
    calls = dr.switch(UInt(indices % 3), [lambda v: v + 1, lambda v: v * 2, lambda v: v * v], x)
    check("calls", calls, np.select([indices % 3 == 0, indices % 3 == 1], [host + 1, host * 2], host * host))


if __name__ == "__main__":
    main()

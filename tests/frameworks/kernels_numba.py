"""Numba-CUDA's kernels on the device against NumPy: one line per computation, and the results' own bits."""
import hashlib
import math
import warnings

warnings.filterwarnings("ignore")  # small grids, and a linker that is the driver's
import numpy as np  # noqa: E402
from numba import cuda, float32, float64, int32, vectorize, guvectorize  # noqa: E402
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32  # noqa: E402

random = np.random.default_rng(11)
THREADS = 128
TILE = 16


@cuda.jit(device=True)
def polynomial(x):
    return 1 + x * (2 + x * (3 + x * 4))


@cuda.jit(device=True, inline=False)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def device_functions(x, y, n):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = polynomial(x[i])
        n[i] = collatz(i + 1)


@cuda.jit
def tiled_product(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[tx, ty] = a[x, tile * TILE + ty]
        right[tx, ty] = b[tile * TILE + tx, y]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[tx, k] * right[k, ty]
        cuda.syncthreads()
    c[x, y] = total


@cuda.jit
def dynamic_shared(x, y):
    pad = cuda.shared.array(0, float64)
    i = cuda.threadIdx.x
    pad[i] = x[i]
    cuda.syncthreads()
    y[i] = pad[x.size - 1 - i]


@cuda.jit
def atomics(x, bins, bounds, total):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i] % bins.size, 1)
        cuda.atomic.max(bounds, 0, x[i])
        cuda.atomic.min(bounds, 1, x[i])
        cuda.atomic.add(total, 0, float64(x[i]))
        cuda.atomic.compare_and_swap(bounds[2:], -1, x[i])


@cuda.jit
def warps(x, sums, votes):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xffffffff, value, offset)
    ballot = cuda.ballot_sync(0xffffffff, x[i] > 50)
    if cuda.laneid == 0:
        sums[i // 32] = value
        votes[i // 32] = cuda.popc(ballot)


@cuda.jit
def whole_grid(x, rounds):
    """Each round reads what other blocks wrote in the one before."""
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(rounds):
        value = x[(i + 97) % x.size]
        grid.sync()
        x[i] = value + 1
        grid.sync()


@cuda.jit
def mathematics(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        y[0, i] = math.sin(v)
        y[1, i] = math.exp(v / 4)
        y[2, i] = math.log(abs(v) + 1)
        y[3, i] = math.pow(abs(v), 1.5)
        y[4, i] = math.atan2(v, 2.0)
        y[5, i] = math.erf(v)
        y[6, i] = math.lgamma(abs(v) + 1)
        y[7, i] = math.fmod(v, 0.7)
        y[8, i] = math.sqrt(abs(v)) + math.floor(v) - math.tanh(v)


LOOKUP = np.arange(64, dtype=np.int32) ** 2


@cuda.jit
def memories(x, y):
    table = cuda.const.array_like(LOOKUP)
    scratch = cuda.local.array(8, int32)
    i = cuda.grid(1)
    if i < x.size:
        for k in range(8):
            scratch[k] = table[(x[i] + k) % 64]
        total = 0
        for k in range(8):
            total += scratch[7 - k] * (k + 1)
        y[i] = total


@cuda.jit
def uniforms(states, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = xoroshiro128p_uniform_float32(states, i)


@vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def ufunc(x, y):
    return math.sqrt(x * x + y * y)


@guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->()", target="cuda")
def inner(x, y, out):
    out[0] = 0.0
    for k in range(x.shape[0]):
        out[0] += x[k] * y[k]


@cuda.reduce
def add_up(a, b):
    return a + b


def launch(kernel, n, *arrays, grid=None, block=THREADS, shared=0, stream=0):
    """Runs it over copies of the arrays, which it returns as the kernel left them."""
    held = [cuda.to_device(array, stream=stream) if isinstance(array, np.ndarray) else array for array in arrays]
    kernel[grid or (n + block - 1) // block, block, stream, shared](*held)
    return [array.copy_to_host(stream=stream) for array in held if hasattr(array, "copy_to_host")]


def collatz_on_host(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def run_axpy():
    x, y = random.standard_normal((2, 1000)).astype(np.float32)
    return launch(axpy, 1000, np.float32(2.5), x, y)[1], y + np.float32(2.5) * x


def run_device_functions():
    x = random.standard_normal(300)
    got = launch(device_functions, 300, x, np.zeros(300), np.zeros(300, np.int64))
    return (np.concatenate([got[1], got[2]]),
            np.concatenate([1 + x * (2 + x * (3 + x * 4)), [collatz_on_host(i + 1) for i in range(300)]]))


def run_tiled_product():
    a, b = random.standard_normal((2, 64, 64)).astype(np.float32)
    return launch(tiled_product, 0, a, b, np.zeros_like(a), grid=(4, 4), block=(TILE, TILE))[2], a @ b


def run_dynamic_shared():
    x = random.standard_normal(256)
    return launch(dynamic_shared, 256, x, np.zeros(256), block=256, shared=2048)[1], x[::-1]


def run_atomics():
    x = random.integers(0, 1000, 5000).astype(np.int32)
    bins, bounds, total = launch(atomics, 5000, x, np.zeros(10, np.int32), np.array([-1, 2000, -1], np.int32),
                                 np.zeros(1))[1:]
    expected = np.concatenate([np.bincount(x % 10, minlength=10), [x.max(), x.min()], [x.sum()]])
    return np.concatenate([bins, bounds[:2], total, [bounds[2] in x]]), np.append(expected, 1)


def run_warps():
    x = random.integers(0, 100, 256).astype(np.int32)
    got = launch(warps, 256, x, np.zeros(8, np.int32), np.zeros(8, np.int32))
    rows = x.reshape(8, 32)
    return np.concatenate(got[1:]), np.concatenate([rows.sum(axis=1), (rows > 50).sum(axis=1)])


def run_whole_grid():
    x = np.arange(512, dtype=np.int64)
    return launch(whole_grid, 512, x, 5)[0], np.roll(x, -97 * 5) + 5


def run_mathematics():
    x = random.standard_normal(200) * 3
    expected = [np.sin(x), np.exp(x / 4), np.log(np.abs(x) + 1), np.abs(x) ** 1.5, np.arctan2(x, 2.0),
                [math.erf(v) for v in x], [math.lgamma(abs(v) + 1) for v in x], np.fmod(x, 0.7),
                np.sqrt(np.abs(x)) + np.floor(x) - np.tanh(x)]
    return launch(mathematics, 200, x, np.zeros((9, 200)))[1], np.array(expected)


def run_memories():
    x = random.integers(0, 1000, 100).astype(np.int32)
    expected = sum(LOOKUP[(x[:, None] + 7 - k) % 64] * (k + 1) for k in range(8)) if False else np.array(
        [sum(LOOKUP[(v + 7 - k) % 64] * (k + 1) for k in range(8)) for v in x])
    return launch(memories, 100, x, np.zeros(100, np.int32))[1], expected


def run_uniforms():
    states = create_xoroshiro128p_states(256, seed=3)
    got = launch(uniforms, 256, states, np.zeros(256, np.float32))[1]
    return np.array([got.min() >= 0, got.max() < 1, abs(got.mean() - 0.5) < 0.1, np.unique(got).size > 250]), np.ones(4)


def run_ufunc():
    x, y = random.standard_normal((2, 500))
    return ufunc(x, y), np.hypot(x, y)


def run_inner():
    x, y = random.standard_normal((2, 20, 30))
    return inner(x, y), (x * y).sum(axis=1)


def run_reduce():
    x = random.integers(0, 1000, 3000).astype(np.int64)
    return np.array([add_up(x)]), np.array([x.sum()])


def run_streams():
    """Pinned memory, two streams and events between them."""
    first, second, ready = cuda.stream(), cuda.stream(), cuda.event()
    x = cuda.pinned_array(1000, np.float32)
    x[:] = random.standard_normal(1000)
    a = cuda.to_device(x, stream=first)
    b = cuda.to_device(np.zeros(1000, np.float32), stream=first)
    axpy[8, THREADS, first](np.float32(3), a, b)
    ready.record(first)
    ready.wait(second)
    axpy[8, THREADS, second](np.float32(4), a, b)
    out = b.copy_to_host(stream=second)
    second.synchronize()
    return out, np.float32(3) * x + np.float32(4) * x


def run_strides():
    """A slice of a device array, and one in Fortran's order."""
    x = random.standard_normal((40, 50))
    held = cuda.to_device(np.asfortranarray(x))
    part = cuda.to_device(x)[5:30]
    return np.concatenate([held.copy_to_host().ravel(), part.copy_to_host().ravel()]), np.concatenate(
        [x.ravel(), x[5:30].ravel()])


def run_managed():
    """An array that the host and the kernels write in turns."""
    x = cuda.managed_array(1000, dtype=np.float32)
    x[:] = np.arange(1000)
    y = cuda.to_device(np.ones(1000, np.float32))
    for turn in range(3):
        axpy[8, THREADS](np.float32(2), y, x)
        cuda.synchronize()
        x[turn] *= 10
    expected = np.arange(1000, dtype=np.float32)
    for turn in range(3):
        expected += 2
        expected[turn] *= 10
    return np.array(x), expected


COMPUTATIONS = [run_axpy, run_device_functions, run_tiled_product, run_dynamic_shared, run_atomics, run_warps,
                run_whole_grid, run_mathematics, run_memories, run_uniforms, run_ufunc, run_inner, run_reduce,
                run_streams, run_strides, run_managed]


def main():
    for computation in COMPUTATIONS:
        got, expected = (np.asarray(array) for array in computation())
        agree = got.shape == expected.shape and np.allclose(got, expected, rtol=1e-5, atol=1e-5)
        name = computation.__name__.removeprefix("run_").replace("_", " ")
        print(name, "agrees" if agree else "DIFFERS", hashlib.sha256(got.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()

"""Halide's CUDA target: a blur in tiles, a sum, and a histogram by atomic additions, against NumPy."""
import halide as hl
import numpy as np

WIDTH, HEIGHT = 192, 120


def check(name, result, expected):
    same = np.array_equal(result, expected) if result.dtype.kind in "iu" else np.allclose(result, expected, rtol=1e-5)
    print(f"{name}: {'agrees' if same else 'DIFFERS'}, {np.asarray(result, np.float64).sum():.6g}", flush=True)


def target():
    chosen = hl.Target(f"{hl.get_host_target()}-cuda-cuda_capability_80")
    return chosen


def realize(function, shape):
    result = function.realize(list(shape), target())
    result.copy_to_host()
    return np.array(result)


def blur(image):
    x, y, xi, yi = hl.Var("x"), hl.Var("y"), hl.Var("xi"), hl.Var("yi")
    clamped = hl.BoundaryConditions.repeat_edge(hl.Buffer(image))
    across, down = hl.Func("across"), hl.Func("down")
    across[x, y] = (clamped[x - 1, y] + clamped[x, y] + clamped[x + 1, y]) / 3
    down[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 3
    down.gpu_tile(x, y, xi, yi, 16, 8)
    across.compute_at(down, x).gpu_threads(x, y)  # in shared memory
    return realize(down, (WIDTH, HEIGHT))


def blurred(image):
    edge = np.pad(image, 1, mode="edge")
    across = (edge[:, :-2] + edge[:, 1:-1] + edge[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3


def sums(image):
    x, y, inner = hl.Var("x"), hl.Var("y"), hl.Var("inner")
    column = hl.RDom([(0, HEIGHT)])
    total = hl.Func("total")
    total[x] = hl.f32(0)
    total[x] += hl.Buffer(image)[x, column]
    total.gpu_tile(x, inner, 32)
    total.update().gpu_tile(x, inner, 32)
    return realize(total, (WIDTH,))


def histogram(levels):
    x = hl.Var("x")
    inner = hl.Var("inner")
    pixels = hl.RDom([(0, WIDTH), (0, HEIGHT)])
    count = hl.Func("count")
    count[x] = hl.i32(0)
    count[hl.i32(hl.Buffer(levels)[pixels.x, pixels.y])] += 1
    count.gpu_tile(x, inner, 32)
    count.update().atomic().gpu_blocks(pixels.y).gpu_threads(pixels.x)
    return realize(count, (256,))


def main():
    random = np.random.default_rng(1)
    image = random.random((HEIGHT, WIDTH), np.float32)
    levels = random.integers(0, 256, (HEIGHT, WIDTH)).astype(np.uint8)
    check("blur", blur(image), blurred(image))
    check("sums", sums(image), image.sum(axis=0, dtype=np.float64))
    check("histogram", histogram(levels), np.bincount(levels.ravel(), minlength=256).astype(np.int32))


if __name__ == "__main__":
    main()

"""Taichi's kernels on the device: n-body against NumPy, a material point method and sparse fields against its own
processor backend; one line per computation, and the results' own bits."""
import hashlib
import sys

import numpy as np
import taichi as ti


def init(arch):
    ti.init(arch=arch, offline_cache=False, log_level=ti.ERROR, random_seed=7, device_memory_GB=0.2,
            default_fp=ti.f32, fast_math=False)


def gravity(bodies, steps):
    """All pairs, leapfrog."""
    random = np.random.default_rng(3)
    start = random.standard_normal((bodies, 3)).astype(np.float32)
    x, v = (ti.Vector.field(3, ti.f32, shape=bodies) for _ in range(2))
    x.from_numpy(start)

    @ti.kernel
    def accelerate(step: ti.f32):
        for i in range(bodies):
            pull = ti.Vector([0.0, 0.0, 0.0])
            for j in range(bodies):
                d = x[j] - x[i]
                square = d.dot(d) + 0.01
                pull += d / (square * ti.sqrt(square))
            v[i] += pull * step

    @ti.kernel
    def move(step: ti.f32):
        for i in x:
            x[i] += v[i] * step

    for _ in range(steps):
        accelerate(1e-3)
        move(1e-3)

    position, velocity = start.astype(np.float64), np.zeros((bodies, 3))
    for _ in range(steps):
        d = position[None, :, :] - position[:, None, :]
        square = (d * d).sum(axis=2) + 0.01
        velocity += 1e-3 * (d / (square * np.sqrt(square))[:, :, None]).sum(axis=1)
        position += 1e-3 * velocity
    return x.to_numpy(), position


def material_points(particles, steps):
    """The 88-line material point method: a falling block of fluid, with float atomics into a grid."""
    grid, step, gravity_of_earth = 32, 2e-4, 9.8
    cell = 1 / grid
    volume = (cell * 0.5) ** 2
    stiffness = 400.0
    x, v = (ti.Vector.field(2, ti.f32, shape=particles) for _ in range(2))
    affine = ti.Matrix.field(2, 2, ti.f32, shape=particles)
    jacobian = ti.field(ti.f32, shape=particles)
    grid_v = ti.Vector.field(2, ti.f32, shape=(grid, grid))
    grid_m = ti.field(ti.f32, shape=(grid, grid))

    @ti.kernel
    def substep():
        for i, j in grid_m:
            grid_v[i, j] = [0, 0]
            grid_m[i, j] = 0
        for p in x:
            base = (x[p] / cell - 0.5).cast(int)
            fx = x[p] / cell - base.cast(float)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -step * 4 * stiffness * volume * (jacobian[p] - 1) / cell ** 2
            moved = ti.Matrix([[stress, 0], [0, stress]]) + volume * affine[p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                distance = (offset.cast(float) - fx) * cell
                weight = w[i].x * w[j].y
                grid_v[base + offset] += weight * (volume * v[p] + moved @ distance)
                grid_m[base + offset] += weight * volume
        for i, j in grid_m:
            if grid_m[i, j] > 0:
                grid_v[i, j] /= grid_m[i, j]
            grid_v[i, j].y -= step * gravity_of_earth
            if i < 3 and grid_v[i, j].x < 0:
                grid_v[i, j].x = 0
            if i > grid - 3 and grid_v[i, j].x > 0:
                grid_v[i, j].x = 0
            if j < 3 and grid_v[i, j].y < 0:
                grid_v[i, j].y = 0
            if j > grid - 3 and grid_v[i, j].y > 0:
                grid_v[i, j].y = 0
        for p in x:
            base = (x[p] / cell - 0.5).cast(int)
            fx = x[p] / cell - base.cast(float)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            velocity = ti.Vector.zero(ti.f32, 2)
            gradient = ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                distance = (offset.cast(float) - fx) * cell
                weight = w[i].x * w[j].y
                velocity += weight * grid_v[base + offset]
                gradient += 4 * weight * grid_v[base + offset].outer_product(distance) / cell ** 2
            v[p] = velocity
            x[p] += step * v[p]
            jacobian[p] *= 1 + step * gradient.trace()
            affine[p] = gradient

    random = np.random.default_rng(4)
    x.from_numpy((random.random((particles, 2)) * 0.4 + 0.2).astype(np.float32))
    v.from_numpy(np.tile(np.float32([0, -1]), (particles, 1)))
    jacobian.fill(1)
    for _ in range(steps):
        substep()
    return np.concatenate([x.to_numpy(), v.to_numpy()], axis=1)


def sparse(kind):
    """Blocks of a large field that exist where something was written; all others read as zero."""
    value = ti.field(ti.i32)
    root = ti.root.pointer(ti.ij, 16) if kind == "pointer" else ti.root.bitmasked(ti.ij, 16)
    root.dense(ti.ij, 8).place(value)
    active, total = ti.field(ti.i32, shape=()), ti.field(ti.i32, shape=())

    @ti.kernel
    def draw():
        for k in range(128):
            value[k, (k * k) // 128] += k + 1

    @ti.kernel
    def count():
        for i, j in value:
            ti.atomic_add(active[None], 1)
            ti.atomic_add(total[None], value[i, j])

    @ti.kernel
    def clear_half():
        for i, j in root:
            if i < 8:
                ti.deactivate(root, [i, j])

    draw()
    count()
    first = (active[None], total[None])
    clear_half()
    active[None] = total[None] = 0
    count()
    return np.array([*first, active[None], total[None]])


def dynamic_lists():
    """Lists that grow on the device."""
    cell = ti.root.dense(ti.i, 16)
    entry = ti.field(ti.i32)
    cell.dynamic(ti.j, 64, chunk_size=8).place(entry)
    lengths = ti.field(ti.i32, shape=16)

    @ti.kernel
    def fill():
        for i in range(16):
            for k in range(i * 3):
                entry[i].append(k)

    @ti.kernel
    def measure():
        for i in range(16):
            lengths[i] = entry[i].length()

    fill()
    measure()
    return lengths.to_numpy()


def reductions(n):
    values = ti.field(ti.f32, shape=n)
    values.from_numpy(np.random.default_rng(5).random(n).astype(np.float32))
    total, most = ti.field(ti.f64, shape=()), ti.field(ti.f32, shape=())

    @ti.kernel
    def reduce():
        for i in values:
            total[None] += ti.cast(values[i], ti.f64)
            ti.atomic_max(most[None], values[i])

    reduce()
    return np.array([total[None], most[None]])


def shared_sum(n):
    """A sum by blocks in shared memory, with barriers."""
    source = ti.field(ti.i32, shape=n)
    source.from_numpy(np.arange(n, dtype=np.int32) % 97)
    sums = ti.field(ti.i32, shape=n // 128)

    @ti.kernel
    def by_blocks():
        ti.loop_config(block_dim=128)
        for i in range(n):
            t = i % 128
            pad = ti.simt.block.SharedArray((128,), ti.i32)
            pad[t] = source[i]
            ti.simt.block.sync()
            width = 64
            while width > 0:
                if t < width:
                    pad[t] += pad[t + width]
                ti.simt.block.sync()
                width //= 2
            if t == 0:
                sums[i // 128] = pad[0]

    by_blocks()
    return sums.to_numpy(), (np.arange(n) % 97).reshape(-1, 128).sum(axis=1)


def elements(n):
    """Elements of an array that the host reads and writes, which takes managed memory, and one with a gradient."""
    x = ti.ndarray(ti.f32, shape=n, needs_grad=True)

    @ti.kernel
    def double(values: ti.types.ndarray()):
        for i in values:
            values[i] = 2 * values[i] + i

    expected = np.zeros(n, np.float32)
    for turn in range(4):
        double(x)
        x[turn] = x[turn + 1] + 5
        expected = 2 * expected + np.arange(n, dtype=np.float32)
        expected[turn] = expected[turn + 1] + 5
    return x.to_numpy(), expected


def report(name, got, expected, tolerance=0.0):
    agree = got.shape == expected.shape and np.allclose(got, expected, rtol=tolerance, atol=tolerance)
    worst = np.abs(got.astype(np.float64) - expected).max()
    print(name, "agrees" if agree else f"DIFFERS by {worst}", hashlib.sha256(got.tobytes()).hexdigest()[:16], flush=True)


def main():
    both = {
        "material points": (lambda: material_points(600, 20), 1e-4),
        "sparse pointer": (lambda: sparse("pointer"), 0),
        "sparse bitmasked": (lambda: sparse("bitmasked"), 0),
        "dynamic lists": (dynamic_lists, 0),
        "reductions": (lambda: reductions(10000), 1e-9),
    }
    init(ti.cpu)
    expected = {name: run() for name, (run, _) in both.items()}
    ti.reset()
    init(ti.cuda)
    if ti.lang.impl.current_cfg().arch != ti.cuda:
        sys.exit("DIFFERS: Taichi fell back to another device")
    report("gravity", *gravity(96, 5), tolerance=1e-4)
    report("shared memory", *shared_sum(1024))
    report("elements", *elements(1000))
    for name, (run, tolerance) in both.items():
        report(name, run(), expected[name], tolerance)


if __name__ == "__main__":
    main()

"""Numba-CUDA's kernels of kernels_numba.py, launched again and again over arrays that stay on the device, with nothing
between the launches. Prints the bits of what they leave, which must be the same wherever they run."""
import hashlib

import kernels_numba as kernels
import numpy as np
from numba import cuda

ITERATIONS, COUNT = 60, 256


def held(*arrays):
    return [cuda.to_device(array) for array in arrays]


def launches():
    """Each kernel with its shape and its arrays."""
    random = np.random.default_rng(11)
    floats = random.standard_normal((2, COUNT)).astype(np.float32)
    numbers = random.integers(0, 100, COUNT).astype(np.int32)
    square = random.standard_normal((64, 64)).astype(np.float32)
    one = (2, COUNT // 2)
    return [
        (kernels.axpy, one, (np.float32(0.5), *held(floats[0], floats[1]))),
        (kernels.device_functions, one, held(floats[0].astype(np.float64), np.zeros(COUNT), np.zeros(COUNT, np.int64))),
        (kernels.tiled_product, ((4, 4), (kernels.TILE, kernels.TILE)), held(square, square, np.zeros_like(square))),
        (kernels.dynamic_shared, (1, COUNT, 0, 2048), held(floats[0].astype(np.float64), np.zeros(COUNT))),
        (kernels.atomics, one, held(numbers, np.zeros(10, np.int32), np.array([-1, 2000, -1], np.int32), np.zeros(1))),
        (kernels.warps, one, held(numbers, np.zeros(8, np.int32), np.zeros(8, np.int32))),
        (kernels.mathematics, one, held(floats[0].astype(np.float64), np.zeros((9, COUNT)))),
        (kernels.memories, one, held(numbers, np.zeros(COUNT, np.int32))),
        (kernels.uniforms, one, (kernels.create_xoroshiro128p_states(COUNT, seed=3), *held(np.zeros(COUNT, np.float32)))),
    ]


def main():
    all_launches = launches()
    for _ in range(ITERATIONS):
        for kernel, shape, arrays in all_launches:
            kernel[shape](*arrays)
        cuda.synchronize()
    for kernel, _, arrays in all_launches:
        bits = b"".join(array.copy_to_host().tobytes() for array in arrays if hasattr(array, "copy_to_host"))
        print(kernel.py_func.__name__, hashlib.sha256(bits).hexdigest()[:16])


if __name__ == "__main__":
    main()

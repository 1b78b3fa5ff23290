"""Slang's CUDA device by slangpy: functions of a module called with arrays, and a reduction, against NumPy."""
import pathlib
import tempfile

import numpy as np
import slangpy as spy

MODULE = """
float Poly(float x, float a) { return a * x * x + sin(x); }
int Mixed(int x, int y) { return (x ^ (y << 2)) + countbits(x); }
"""


def check(name, result, expected):
    same = np.array_equal(result, expected) if result.dtype.kind in "iu" else np.allclose(result, expected, rtol=1e-5)
    print(f"{name}: {'agrees' if same else 'DIFFERS'}, {np.asarray(result, np.float64).sum():.6g}", flush=True)


def main():
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / "functions.slang").write_text(MODULE)
        device = spy.create_device(spy.DeviceType.cuda, include_paths=[directory, spy.SHADER_PATH])
        module = spy.Module(device.load_module("functions.slang"))
        x = random.random(1000, np.float32)
        result = module.Poly(x, 3.0, _result="numpy")
        check("a function of floats", result, (3 * x * x + np.sin(x)).astype(np.float32))
        a, b = (random.integers(0, 1 << 20, (40, 30)).astype(np.int32) for _ in range(2))
        bits = np.array([int(value).bit_count() for value in a.ravel()]).reshape(a.shape)
        check("a function of integers", module.Mixed(a, b, _result="numpy"), ((a ^ (b << 2)) + bits).astype(np.int32))


if __name__ == "__main__":
    main()

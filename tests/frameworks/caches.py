"""Whether the switches that `laneway run` sets make frameworks give device memory back."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def held(laneway, *flags):
    command = [str(ROOT / ".venv/bin/python"), str(ROOT / "tests/frameworks/held_tinygrad.py")]
    libraries = os.path.dirname(os.environ["NVRTC_PATH"])
    result = laneway.run(command, *flags, DEV="CUDA", JIT="2", LD_LIBRARY_PATH=libraries)
    taken = re.search(r"took (\d+) MiB", result.out)
    holds = re.search(r"holds (\d+) MiB", result.out)
    check(result.code == 0 and taken and holds, f"{command}\n{result}")
    check(int(taken[1]) >= 32, f"four tensors of 8 MiB must show in the driver's figures\n{result}")
    return int(holds[1])


def test_tinygrad_returns_its_memory():
    with Laneway() as laneway:
        check(held(laneway) == 0, "without its cache tinygrad must return everything")
        check(held(laneway, "--no-env") >= 32, "with its cache tinygrad keeps what it had")


if __name__ == "__main__":
    harness.main()

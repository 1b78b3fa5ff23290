"""Eight jobs at once whose memory sums to three times the device's: all finish under every policy with the bytes that
they print alone, and none hears of a memory that others hold.

One of them is tinygrad under the policies of WITH_TINYGRAD, where it is installed: it takes ten seconds of a core each
time, nearly all of them to compile its kernels. Elsewhere another example takes its place; with --long, nowhere.
"""
import gzip
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv/bin/python"
WITH_TINYGRAD = ("fifo", "pack", "fair")
MIB = 1 << 20
DEVICE_MIB = 256
ROWS = 300  # of the digits, for tinygrad


def loop(laneway, persistent, ephemeral):
    command = [laneway.binary("iterate"), "--iterations", "30", "--kernel-us", "50",
               "--persistent", str(persistent), "--ephemeral", str(ephemeral)]
    return command, (persistent + ephemeral) * MIB


def examples(laneway):
    """Commands, and what each holds at its peak."""
    elements = 15_000_000
    return [loop(laneway, 96, 24), loop(laneway, 160, 16), loop(laneway, 128, 32), loop(laneway, 96, 48),
            ([laneway.binary("vector_add"), str(elements)], 3 * 4 * elements),
            ([laneway.binary("train_digits"), "--epochs", "4"], MIB // 2),
            ([laneway.binary("infer_digits"), "--requests", "100"], MIB // 2)]


def tinygrad(laneway, wanted):
    """Its command and environment, or another example's."""
    if not wanted or not PYTHON.exists() or "NVRTC_PATH" not in os.environ:
        return [laneway.binary("nbody"), "500", "20"], {}
    data = laneway.root / "digits.csv.gz"
    with gzip.open(ROOT / "examples/data/digits.csv.gz", "rt") as file:
        rows = [next(file) for _ in range(ROWS)]
    with gzip.open(data, "wt") as file:
        file.writelines(rows)
    command = [str(PYTHON), str(ROOT / "examples/python/digits_tinygrad.py"), "--epochs", "1", "--requests", "2",
               "--data", str(data)]
    libraries = os.path.dirname(os.environ["NVRTC_PATH"])
    return command, {"DEV": "CUDA", "LD_LIBRARY_PATH": libraries}


def run_jobs(policy, long):
    with Laneway(softgpu=f"memory={DEVICE_MIB}MiB", start=False) as laneway:
        sized = examples(laneway)
        total = sum(size for _, size in sized)
        check(total >= 3 * DEVICE_MIB * MIB, f"the jobs hold only {total} bytes")
        jobs = [(command, {}) for command, _ in sized] + [tinygrad(laneway, long or policy in WITH_TINYGRAD)]
        expected = [laneway.bare(command, **environment) for command, environment in jobs]
        for (command, _), alone in zip(jobs, expected):
            check(alone.code == 0, f"alone: {command}\n{alone}")
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", f"--policy={policy}"])
        programs = [laneway.spawn(command, **environment) for command, environment in jobs]
        for (command, _), program, alone in zip(jobs, programs, expected):
            result = program.wait()
            check((result.code, harness.without_times(result.out), harness.without_waits(result.err)) ==
                  (0, harness.without_times(alone.out), alone.err),
                  f"{policy}: {command}: another result than alone:\n{result}\nalone:\n{alone}")
        print(f"{total // MIB} MiB of jobs on a device of {DEVICE_MIB} MiB, the eighth is {jobs[-1][0][0]}")
        wait_for(lambda: laneway.used_bytes() == 0, "memory is left in use")


def test_fifo(long):
    run_jobs("fifo", long)


def test_srtf(long):
    run_jobs("srtf", long)


def test_pack(long):
    run_jobs("pack", long)


def test_fair(long):
    run_jobs("fair", long)


def test_rr(long):
    run_jobs("rr", long)


def test_priority(long):
    run_jobs("priority", long)


def test_edf(long):
    run_jobs("edf", long)


def test_shares(long):
    run_jobs("shares", long)


if __name__ == "__main__":
    harness.main()

"""PyCUDA's own tests on the bare device and through Laneway: each ends alike, and every failure has a known reason.

PyCUDA compiles at run time by `nvcc --cubin`; ptx_compiler/nvcc stands before it and gives PTX.
"""
import collections
import os
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-suites"
SECONDS = 1700
PASSED_MIN = 255
# What a failure says -> the feature that is missing.
REASONS = {
    r"curand": "cuRAND's library holds machine code",
    r"__cudaCDP2": "kernels that launch kernels",
}


def stand_in(directory):
    """PATH with our nvcc first, where PyCUDA also finds the toolkit's libraries: beside nvcc's directory."""
    (directory / "bin").mkdir()
    (directory / "bin/nvcc").symlink_to(pathlib.Path(__file__).parent / "ptx_compiler/nvcc")
    (directory / "lib64").symlink_to(pathlib.Path(os.environ["CUDA_PATH"]) / "lib64")
    return f"{directory / 'bin'}:{os.environ['PATH']}"


def run_suite(run, directory, way, path):
    """test -> (outcome, what it says)"""
    report = directory / f"{way}.xml"
    command = ["env", "-C", str(VENV / "pycuda-tests"), str(VENV / "bin/python"), "-m", "pytest", "-q", "-p",
               "no:cacheprovider", f"--junitxml={report}", "test_driver.py", "test_cumath.py", "test_gpuarray.py"]
    # One cache for both: what differs is the device, not the compiler.
    result = run(command, seconds=SECONDS, PATH=path, PYCUDA_CACHE_DIR=str(directory / "cache"),
                 CUDA_HOME=os.environ["CUDA_PATH"])
    check(report.exists(), f"{way}: no report\n{result}")
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag: child.get("message", "") + (child.text or "") for child in case}
        outcome = next((kind for kind in ("failure", "error", "skipped") if kind in kinds), "passed")
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = (outcome, kinds.get(outcome, ""))
    return outcomes


def reason(name, said):
    return next((why for pattern, why in REASONS.items() if re.search(pattern, name + said, re.I)), None)


def check_outcomes(outcomes, way):
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    print(f"{way}: {dict(counts)} of {len(outcomes)}")
    for name, (outcome, said) in sorted(outcomes.items()):
        if outcome in ("failure", "error"):
            print(f"  {name}: {reason(name, said) or said[-300:]}")
    unknown = [name for name, (outcome, said) in outcomes.items()
               if outcome in ("failure", "error") and not reason(name, said)]
    check(not unknown, f"{way}: failures without a known reason: {unknown}")
    check(counts["passed"] >= PASSED_MIN, f"{way}: {counts['passed']} passed, {PASSED_MIN} must")


def test_its_own_tests():
    with Laneway() as laneway, tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        (directory / "cache").mkdir()
        path = stand_in(directory)
        bare = run_suite(laneway.bare, directory, "bare", path)
        through = run_suite(laneway.run, directory, "through Laneway", path)
    check_outcomes(bare, "bare")
    check_outcomes(through, "through Laneway")
    differ = [name for name in bare if bare[name][0] != through.get(name, ("gone",))[0]]
    check(not differ, f"through Laneway these end differently: {differ}")


if __name__ == "__main__":
    harness.main()

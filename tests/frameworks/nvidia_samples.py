"""Builds NVIDIA's CUDA samples from a checkout and runs them on the bare software GPU and through Laneway.

    samples.py --build DIR --samples CHECKOUT [--whole] [--only NAME]... [--jobs N] [--seconds N] [--json FILE]

Each is built as its CMakeLists.txt says (sources, directories, libraries, relocatable device code), but against the
shared runtime and as PTX; --whole builds without relocatable device code. A table says how each ended in both ways:
"passed" (0), "waived" (2: the sample says that the device lacks something), "late" (not within --seconds), or "failed",
with what it printed last. Those that need what nothing here has are counted and left out. Nothing of the samples is
part of this tree.
The exit code is 1 when a sample ends differently through Laneway than bare.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Failure, Laneway  # noqa: E402

TOOLKIT = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
CODE = ["-gencode", "arch=compute_80,code=compute_80"]
BUILD_SECONDS = 900
NVRTC_HEADERS = ("cooperative_groups.h", "cooperative_groups", "cccl/nv", "cccl/cuda")  # looked for beside the program
WAIVED = 2  # EXIT_WAIVED of the samples' headers

# What in a sample's CMakeLists.txt stands for a need that nothing here meets.
NEEDS = {
    "d3d1": "Windows", "NVSCI": "NvSci", "GLUT": "OpenGL", "EGL": "EGL", "Vulkan": "Vulkan", "MPI_": "MPI",
    "FreeImage": "NPP", "CUDA::npp": "NPP", "CUDA::nvjpeg": "nvJPEG", "CUDA::curand": "cuRAND",
    "CUDA::cufft": "cuFFT", "CUDA::cusparse": "cuSPARSE", "CUDA::cusolver": "cuSOLVER", "NVJITLINK_LIB": "nvJitLink",
    "cudadevrt": "launches from the device",
}
# By their folders.
FOLDERS = {"7_libNVVM": "libNVVM", "8_Platform_Specific": "Tegra"}
DEVICE_LAUNCHES = re.compile(r"^cdp")


@dataclasses.dataclass
class Sample:
    name: str
    folder: pathlib.Path
    sources: list
    includes: list
    image: tuple  # the module that it loads by name, and what is compiled to it; or empty
    separable: bool
    needs: str  # why it cannot run, or nothing


def words_of(text, command):
    """The words of each call of a CMake command."""
    return [words.split() for words in re.findall(rf"\b{command}\s*\(([^)]*)\)", text)]


def read_sample(folder, gpus):
    text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())
    programs = words_of(text, "add_executable")
    name = programs[0][0] if programs else folder.name
    needs = next((need for word, need in NEEDS.items() if word in text), FOLDERS.get(folder.parent.name, ""))
    if DEVICE_LAUNCHES.match(name):
        needs = "launches from the device"
    if gpus.get(name, {}).get("min_gpus", 1) > 1:
        needs = "several devices"
    includes = [word for call in words_of(text, "include_directories") + words_of(text, "target_include_directories")
                for word in call if "$" not in word and (folder / word).is_dir()]
    image = re.search(r'"\$\{CMAKE_CURRENT_BINARY_DIR\}/(\w+\.(?:fatbin|ptx))"', text)
    kernel = re.search(r'CUDA_KERNEL_SOURCE "\$\{CMAKE_CURRENT_SOURCE_DIR\}/(\w+\.cu)"', text)
    return Sample(name, folder, programs[0][1:] if programs else [], includes,
                  (image[1], kernel[1]) if image and kernel else (), "CUDA_SEPARABLE_COMPILATION ON" in text, needs)


def read_samples(checkout):
    arguments = json.loads((checkout / "test_args.json").read_text())
    folders = sorted(path.parent for path in (checkout / "Samples").glob("*/*/CMakeLists.txt"))
    return [read_sample(folder, arguments) for folder in folders], arguments


def build(sample, directory, whole):
    """Compiles it into a directory of its own, beside its files and data; returns what the compiler refused."""
    directory.mkdir(parents=True, exist_ok=True)
    headers = [TOOLKIT / "include" / name for name in NVRTC_HEADERS] if "_nvrtc" in sample.name else []
    for path in [*sample.folder.iterdir(), *sample.folder.glob("data/*"), *headers]:
        if not (directory / path.name).is_symlink():
            (directory / path.name).symlink_to(path)
    program = directory / (sample.name + ".run")
    if program.exists():
        return ""
    includes = [f"-I{sample.folder / include}" for include in sample.includes]
    flags = ["--cudart", "shared", *CODE, "-std=c++17", "-O2", "-w", "--extended-lambda", "-Xcompiler", "-fopenmp",
             f"-I{TOOLKIT}/include"]
    relocatable = ["-rdc=true"] if sample.separable and not whole else []
    commands = [[str(TOOLKIT / "bin/nvcc"), *flags, *relocatable, *includes,
                 *(str(sample.folder / source) for source in sample.sources), "-o", str(program),
                 "-lcublas", "-lnvrtc", "-lcuda", "-ldl", "-lpthread", "-lrt"]]
    if sample.image:
        image, source = sample.image
        kind = "-fatbin" if image.endswith("fatbin") else "-ptx"
        code = CODE if kind == "-fatbin" else ["-arch=compute_80"]
        commands.append([str(TOOLKIT / "bin/nvcc"), *code, kind, *includes, str(sample.folder / source),
                         "-o", str(directory / image)])
    for command in commands:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=BUILD_SECONDS)
        if result.returncode != 0:
            return next((line for line in result.stdout.splitlines() if "error" in line), result.stdout[-200:])
    return ""


def verdict(run, command, seconds, environment):
    """How it ended, its last line, and the seconds that it took."""
    start = time.monotonic()
    try:
        result = run(command, seconds=seconds, **environment)
    except Failure:
        return "late", "", seconds
    took = time.monotonic() - start
    if result.code in (0, WAIVED):
        return ("passed" if result.code == 0 else "waived"), "", took
    lines = [line for line in (result.out + "\n" + result.err).splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"laneway|softgpu|error|fail", line, re.I)]
    return "failed", f"{result.code}: " + " | ".join((wrong or lines)[-2:])[-300:], took


def run_both(laneway, sample, directory, arguments, seconds):
    ways = []
    environment = {"LD_LIBRARY_PATH": f"{TOOLKIT}/lib64", "CUDA_HOME": str(TOOLKIT), "CUDA_PATH": str(TOOLKIT)}
    runs = arguments.get(sample.name, {}).get("runs") or [arguments.get(sample.name, {})]
    for way in (laneway.bare, laneway.run):
        worst = ("passed", "", 0.0)
        for each in runs:
            command = ["env", "-C", str(directory), f"./{sample.name}.run", *each.get("args", [])]
            one = verdict(way, command, seconds, environment)
            worst = (*(worst if one[0] == "passed" else one)[:2], worst[2] + one[2])
        ways.append(worst)
    return ways


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=pathlib.Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--into", type=pathlib.Path, default=pathlib.Path("/tmp/laneway-samples"), metavar="DIR",
                        help="for the programs")
    parser.add_argument("--whole", action="store_true", help="no relocatable device code")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=120, help="for each run of a sample")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def show(rows, left_out):
    for way in ("bare", "laneway"):
        counts = collections.Counter(row[way][0] for row in rows)
        print(f"{way}: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()) + f", of {len(rows)}")
    print("left out, for they need: " + ", ".join(f"{need} ({count})" for need, count in left_out.most_common()))


def main():
    options = read_options()
    Laneway.build = options.build.resolve()
    samples, arguments = read_samples(options.samples.resolve())
    left_out = collections.Counter(sample.needs for sample in samples if sample.needs)
    samples = [sample for sample in samples if not sample.needs and (not options.only or sample.name in options.only)]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(sample):
            directory = options.into.resolve() / ("whole" if options.whole else "separable") / sample.name
            wrong = build(sample, directory, options.whole)
            if wrong:
                return sample, [("unbuilt", wrong, 0.0)] * 2
            with Laneway() as laneway:  # of its own: some samples end the context that they share with others
                return sample, run_both(laneway, sample, directory, arguments, options.seconds)
        for sample, (bare, through) in pool.map(one, samples):
            rows.append({"name": sample.name, "bare": bare, "laneway": through})
            print(f"{sample.name:32}{bare[0]:9}{bare[2]:7.1f} s  {through[0]:9}{through[2]:7.1f} s  "
                  f"{through[1] or bare[1]}", flush=True)
    show(rows, left_out)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    sys.exit(any(row["bare"][0] != row["laneway"][0] for row in rows))


if __name__ == "__main__":
    main()

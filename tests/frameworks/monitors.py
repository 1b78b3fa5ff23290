"""What tools that watch GPUs see of Laneway: through NVIDIA's own Python module of NVML, nvitop and gpustat."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import top  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
TRAIN = ("train_digits", "--epochs", "1000000")
ASK = """
import json, pynvml as nvml
nvml.nvmlInit()
devices = []
for i in range(nvml.nvmlDeviceGetCount()):
    device = nvml.nvmlDeviceGetHandleByIndex(i)
    memory = nvml.nvmlDeviceGetMemoryInfo(device)
    def asked(call, *arguments):
        try:
            return call(device, *arguments)
        except nvml.NVMLError as error:
            return type(error).__name__
    use = asked(nvml.nvmlDeviceGetUtilizationRates)
    devices.append({
        "name": nvml.nvmlDeviceGetName(device), "uuid": nvml.nvmlDeviceGetUUID(device),
        "place": nvml.nvmlDeviceGetPciInfo(device).busId, "total": memory.total, "used": memory.used,
        "busy": use if isinstance(use, str) else use.gpu, "power": asked(nvml.nvmlDeviceGetPowerUsage),
        "setting": asked(nvml.nvmlDeviceSetPersistenceMode, 1),
        "processes": {process.pid: process.usedGpuMemory
                      for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)}})
nvml.nvmlShutdown()
print(json.dumps(devices))
"""


def ask(laneway, *options):
    result = laneway.run([sys.executable, "-c", ASK], *options)
    check(result.code == 0, f"{result}")
    return json.loads(result.out)


def training(laneway):
    program = laneway.spawn([laneway.binary(TRAIN[0]), *TRAIN[1:]])
    return wait_for(lambda: next((s for s in top(laneway)["sessions"] if s["iterations"] > 0 and s["pid"] == program.pid), None),
                    "the job trains")


def test_a_monitor_sees_memory_use_and_processes_and_becomes_no_session():
    with Laneway() as laneway:
        session = training(laneway)
        device, = wait_for(lambda: (lambda seen: seen if seen[0]["busy"] > 0 else None)(ask(laneway)), "the device is busy")
        told = top(laneway)["devices"][0]
        check(device["name"] == told["name"] and device["uuid"] == told["uuid"], f"{device}\n{told}")
        check(device["place"] == "0000" + told["pci_bus_id"], f"{device}\n{told}")
        check(device["total"] == told["capacity_bytes"], f"{device}\n{told}")
        check(device["processes"] == {str(session["pid"]): session["device_bytes"]}, f"{device}\n{session}")
        check(device["used"] == session["device_bytes"], f"{device}\n{session}")
        check((device["power"], device["setting"]) == ("NVMLError_NotSupported", "NVMLError_NoPermission"), f"{device}")
        check(len(laneway.sessions()) == 1, f"{laneway.status()}")


def test_a_limited_job_sees_its_share():
    """Of memory. Its processes are not alone on the device, and it sees them all."""
    with Laneway() as laneway:
        session = training(laneway)
        device, = ask(laneway, "--memory=64MiB")
        check((device["total"], device["used"]) == (64 << 20, 0), f"{device}")
        check(list(device["processes"]) == [str(session["pid"])], f"{device}")


def test_chosen_devices_are_counted_as_cuda_counts_them():
    with Laneway(softgpu="devices=3") as laneway:
        every = ask(laneway)
        check(len({device["uuid"] for device in every}) == 3, f"{every}")
        chosen = ask(laneway, "--gpus=2,0")
        check([device["uuid"] for device in chosen] == [every[2]["uuid"], every[0]["uuid"]], f"{every}\n{chosen}")


def test_the_software_gpu_tells_of_itself():
    with Laneway() as laneway:
        result = laneway.bare([sys.executable, "-c", ASK])
        device, = json.loads(result.out)
        check(device["name"] == "Laneway Software GPU" and device["processes"] == {}, f"{device}")
        check(device["busy"] == "NVMLError_NotSupported", f"{device}")


def test_nvitop_and_gpustat_show_the_device():
    with Laneway() as laneway:
        session = training(laneway)
        for tool, *options in (("nvitop", "--once"), ("gpustat", "--show-pid", "--no-color")):
            result = laneway.run([str(BIN / tool), *options])
            check(result.code == 0, f"{result}")
            check(str(session["pid"]) in result.out and "Software GPU" in result.out, f"{result}")
            mib = session["device_bytes"] >> 20
            check(re.search(rf"\b{mib}(?:\.00MiB)? */ *4096", result.out) is not None, f"{mib} MiB\n{result}")


def test_every_name_of_the_header_is_exported():
    """By both libraries, and no other but the mark by which one of ours is told from the vendor's."""
    with Laneway() as laneway:
        header, = (BIN.parent / "lib").glob("python3*/site-packages/nvidia/cu13/include/nvml.h")
        names = set(re.findall(r"DECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(", header.read_text()))
        check(len(names) > 390, f"{len(names)} names")
        for directory in ("shim", "softgpu"):
            library = laneway.build / "lib" / "laneway" / directory / "libnvidia-ml.so.1"
            listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
            exported = {line.split()[-1] for line in listed.stdout.splitlines()}
            check(exported - {"laneway_stand_in"} == names, f"{directory}: {sorted(exported ^ names)}")


if __name__ == "__main__":
    harness.main()

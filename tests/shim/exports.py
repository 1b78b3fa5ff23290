"""The facades export exactly the names that the vendor's libraries export, and the client leaks none."""
import pathlib
import re
import subprocess
import sys

build, root, cuda = (pathlib.Path(word) for word in sys.argv[1:4])
shim = build / "lib" / "laneway" / "shim"


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True)
    return {line.split()[2].split("@")[0] for line in lines.stdout.splitlines() if line.split()[1] in "TWi"}


def listed(*names):
    found = set()
    for name in names:
        found |= set(re.findall(r"^(?:CALL|NAME)\((\w+)", (root / name).read_text(), re.MULTILINE))
    return found


def check(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: missing {sorted(theirs - ours)[:10]}, too many {sorted(ours - theirs)[:10]}")


unlisted = listed("ipc/calls/driver_unlisted.inc")
for library in (shim, shim.parent / "softgpu"):
    check(f"{library.name}/libcuda.so.1", {name for name in exported(library / "libcuda.so.1") if name.startswith("cu")},
          listed("ipc/calls/driver.inc") | unlisted)
stub = cuda / "lib64" / "stubs" / "libcuda.so"
if stub.exists():
    check("libcuda.so.1 and the toolkit's stub", exported(shim / "libcuda.so.1") - unlisted, exported(stub))
check("libcublas.so.13", exported(shim / "libcublas.so.13"),
      listed("ipc/calls/cublas.inc", "shim/cublas/unlisted_cublas.inc"))
check("libcublas.so.13 and the software GPU's", exported(shim / "libcublas.so.13"),
      listed("softgpu/cublas/names/cublas.inc"))
check("libcublasLt.so.13", exported(shim / "libcublasLt.so.13"),
      listed("ipc/calls/cublaslt.inc", "shim/cublas/unlisted_cublaslt.inc"))
client = {name for name in exported(shim / "liblaneway_client.so") if not re.match(r"_Z\w*?(4shim|3ipc)", name)}
check("liblaneway_client.so", client, {"dlopen", "laneway_iteration", "laneway_nvtx_range"})
check("liblaneway_nvtx.so", exported(shim / "liblaneway_nvtx.so"), {"InitializeInjectionNvtx2"})
print("exports: ok")

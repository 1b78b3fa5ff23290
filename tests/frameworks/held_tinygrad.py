"""What tinygrad keeps of the device's memory after all its tensors are gone, in MiB, as the driver tells."""
import ctypes
import gc

from tinygrad import Device, Tensor

MIB = 1 << 20


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    code = ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    if code != 0:
        raise SystemExit(f"cuMemGetInfo: {code}")
    return free.value


def use(mib):
    values = Tensor.ones(mib, MIB // 4).contiguous().realize()
    Device["CUDA"].synchronize()
    return values


use(1)
gc.collect()
before = free_bytes()
tensors = [use(8) for _ in range(4)]
taken = before - free_bytes()
del tensors
gc.collect()
Device["CUDA"].synchronize()
print(f"took {taken // MIB} MiB")
print(f"holds {max(0, before - free_bytes()) // MIB} MiB")

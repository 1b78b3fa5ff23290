"""Finds the driver by ctypes, as Python frameworks do."""
import ctypes
import ctypes.util

library = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int(0)
print("init", library.cuInit(0), "count", library.cuDeviceGetCount(ctypes.byref(count)), count.value > 0)
name = ctypes.util.find_library("cuda")
print("find_library", name)
if name:
    print("init", ctypes.CDLL(name).cuInit(0))

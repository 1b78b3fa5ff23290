"""GGUF files for tests: writes small models, and reads those of others into NumPy arrays of float64."""
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "frameworks"))
import gguf_keys  # noqa: E402

F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8  # types of tensors
ALIGNMENT = 32


def value_of(value):
    if isinstance(value, tuple):  # as the functions of gguf_keys return it
        return value
    if isinstance(value, str):
        return gguf_keys.text(value)
    if isinstance(value, list):
        return gguf_keys.array(gguf_keys.TEXT, value)
    return gguf_keys.real(value) if isinstance(value, float) else gguf_keys.number(value)


def write(path, keys, tensors):
    """`tensors`: name -> array of float32, written as it is."""
    table, data = b"", b""
    for name, array in tensors.items():
        sides = array.shape[::-1]
        table += gguf_keys.text_of(name) + struct.pack(f"<I{len(sides)}QIQ", len(sides), *sides, F32, len(data))
        data += array.astype("<f4").tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    head = gguf_keys.head({name: value_of(value) for name, value in keys.items()}, len(tensors)) + table
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)


class Reader(gguf_keys.Reader):
    """A file's keys (arrays of text and numbers as lists) and tensors."""

    def __init__(self, path):
        super().__init__(path.read_bytes())
        tensors, self.keys = self.head()
        table = []
        for _ in range(tensors):
            name = self.value(gguf_keys.TEXT)
            sides = [self.number("Q") for _ in range(self.number("I"))]
            table.append((name, sides, self.number("I"), self.number("Q")))
        base = self.at + -self.at % self.keys.get("general.alignment", ALIGNMENT)
        self.tensors = {name: self.floats(sides, kind, base + offset) for name, sides, kind, offset in table}

    def floats(self, sides, kind, offset):
        count = int(np.prod(sides))
        if kind == F32:
            flat = np.frombuffer(self.data, "<f4", count, offset)
        elif kind == F16:
            flat = np.frombuffer(self.data, "<f2", count, offset)
        elif kind == Q4_1:  # scale, minimum, 32 nibbles: the first half of the block in the low ones
            blocks = np.frombuffer(self.data, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), count // 32, offset)
            nibbles = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1)
            flat = nibbles * blocks["d"].astype("f4")[:, None] + blocks["m"].astype("f4")[:, None]
        elif kind == Q8_0:
            blocks = np.frombuffer(self.data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, offset)
            flat = blocks["q"] * blocks["d"].astype("f4")[:, None]
        else:
            raise ValueError(f"a tensor of type {kind}")
        return np.asarray(flat, np.float64).reshape(sides[::-1])

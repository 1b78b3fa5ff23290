"""GGUF files for tests: writes small models, and reads those of others into NumPy arrays of float64."""
import struct

import numpy as np

F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
UINT32, FLOAT32, TEXT, ARRAY = 4, 6, 8, 9
ALIGNMENT = 32
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def key(name, value):
    if isinstance(value, str):
        return text(name) + struct.pack("<I", TEXT) + text(value)
    if isinstance(value, list):
        return text(name) + struct.pack("<IIQ", ARRAY, TEXT, len(value)) + b"".join(map(text, value))
    if isinstance(value, float):
        return text(name) + struct.pack("<If", FLOAT32, value)
    return text(name) + struct.pack("<II", UINT32, value)


def write(path, keys, tensors):
    """`tensors`: name -> array of float32, written as it is."""
    table, data = b"", b""
    for name, array in tensors.items():
        sides = array.shape[::-1]
        table += text(name) + struct.pack(f"<I{len(sides)}QIQ", len(sides), *sides, F32, len(data))
        data += array.astype("<f4").tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(key(name, value) for name, value in keys.items()) + table
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)


class Reader:
    """A file's keys (arrays of text and numbers as lists) and tensors."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.at = 4
        _, tensors, keys = self.take("<IQQ")
        self.keys = {}
        for _ in range(keys):
            name = self.text()
            self.keys[name] = self.value(self.take("<I")[0])
        table = []
        for _ in range(tensors):
            name, (rank,) = self.text(), self.take("<I")
            table.append((name, self.take(f"<{rank}Q"), *self.take("<IQ")))
        base = self.at + -self.at % self.keys.get("general.alignment", ALIGNMENT)
        self.tensors = {name: self.floats(sides, kind, base + offset) for name, sides, kind, offset in table}

    def take(self, form):
        values = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        (length,) = self.take("<Q")
        self.at += length
        return self.bytes[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == ARRAY:
            element, count = self.take("<IQ")
            return [self.value(element) for _ in range(count)]
        return self.take("<" + NUMBERS[kind])[0]

    def floats(self, sides, kind, offset):
        count = int(np.prod(sides))
        if kind == F32:
            flat = np.frombuffer(self.bytes, "<f4", count, offset)
        elif kind == F16:
            flat = np.frombuffer(self.bytes, "<f2", count, offset)
        elif kind == Q4_1:  # scale, minimum, 32 nibbles: the first half of the block in the low ones
            blocks = np.frombuffer(self.bytes, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), count // 32, offset)
            nibbles = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1)
            flat = nibbles * blocks["d"].astype("f4")[:, None] + blocks["m"].astype("f4")[:, None]
        elif kind == Q8_0:
            blocks = np.frombuffer(self.bytes, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, offset)
            flat = blocks["q"] * blocks["d"].astype("f4")[:, None]
        else:
            raise ValueError(f"a tensor of type {kind}")
        return np.asarray(flat, np.float64).reshape(sides[::-1])

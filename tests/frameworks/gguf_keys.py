"""Metadata of GGUF files for tests: writes what a test says of a tokenizer, reads what a model's file says of its own."""
import struct

FORMATS = ["B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d"]  # of numbers, by their type in the file
I32, U32, F32, BOOL, TEXT, ARRAY = 5, 4, 6, 7, 8, 9


def text_of(value):
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def array(kind, values):
    """The value of an array: texts, or numbers of a type."""
    body = b"".join(map(text_of, values)) if kind == TEXT else struct.pack(f"<{len(values)}{FORMATS[kind]}", *values)
    return ARRAY, struct.pack("<IQ", kind, len(values)) + body


def text(value):
    return TEXT, text_of(value)


def truth(value):
    return BOOL, struct.pack("<?", value)


def number(value):
    return U32, struct.pack("<I", value)


def real(value):
    return F32, struct.pack("<f", value)


def head(keys, tensors=0):
    """A file up to its table of so many tensors. `keys`: names, each with what one of the functions above returns."""
    body = b"".join(text_of(name) + struct.pack("<I", kind) + value for name, (kind, value) in keys.items())
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, len(keys)) + body


def write(path, keys):
    path.write_bytes(head(keys))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, letter):
        value, = struct.unpack_from("<" + letter, self.data, self.at)
        self.at += struct.calcsize("<" + letter)
        return value

    def value(self, kind):
        if kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        if kind != TEXT:
            return self.number(FORMATS[kind])
        length = self.number("Q")
        self.at += length
        return bytes(self.data[self.at - length:self.at]).decode()

    def head(self):
        """How many tensors there are, and the keys. What follows is the table of tensors."""
        self.at = 8
        tensors, keys = self.number("Q"), self.number("Q")
        return tensors, {self.value(TEXT): self.value(self.number("I")) for _ in range(keys)}


def read(path):
    """The keys of a whole file, tensors aside."""
    return Reader(memoryview(path.read_bytes())).head()[1]

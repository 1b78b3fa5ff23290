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


def write(path, keys):
    """`keys`: names, each with what one of the functions above returns."""
    body = b"".join(text_of(name) + struct.pack("<I", kind) + value for name, (kind, value) in keys.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body)


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


def read(path):
    """The keys of a whole file, tensors aside."""
    reader = Reader(memoryview(path.read_bytes()))
    reader.at = 16
    return {reader.value(TEXT): reader.value(reader.number("I")) for _ in range(reader.number("Q"))}

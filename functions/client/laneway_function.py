"""A client of `laneway serve` that needs the standard library alone.

    import laneway_function
    with laneway_function.connect("digits") as digits:
        print(digits.inputs)                         # [Tensor(name='input0', type='f32', shape=(64,))]
        answer = digits.call(input0=bytes(256))      # {'output0': b'...'}
        logits = memoryview(answer["output0"]).cast("f")

Inputs are anything with a buffer (bytes, array.array, numpy arrays) of the input's size in bytes; outputs are bytes.
"""
import collections
import json
import os
import socket
import struct

TYPES = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
CALL, DESCRIBE = 1, 2

Tensor = collections.namedtuple("Tensor", "name type shape")


class Refused(Exception):
    """The server refuses the request, or cannot run the function; the text is the server's sentence."""


def runtime_dir():
    own, system = os.environ.get("LANEWAY_RUNTIME_DIR"), os.environ.get("XDG_RUNTIME_DIR")
    return own or (system + "/laneway" if system else f"/dev/shm/laneway-{os.geteuid()}")


def connect(name, directory=None):
    """Connects to the function of this name; OSError when it is not served."""
    return Function(f"{directory or runtime_dir()}/function-{name}.sock")


class Function:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)
            manifest = json.loads(self._ask(DESCRIBE, [])["manifest"])
        except BaseException:
            self.socket.close()
            raise
        self.inputs, self.outputs = ([Tensor(one["name"], one["type"], tuple(one["shape"])) for one in manifest[key]]
                                     for key in ("inputs", "outputs"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def call(self, **inputs):
        """Runs the function once: inputs by name, outputs by name."""
        known = {tensor.name: tensor for tensor in self.inputs}
        tensors = []
        for name, value in inputs.items():
            if name not in known:
                raise Refused(f"there is no input {name}; there are {', '.join(known)}")
            tensors.append((known[name], memoryview(value).cast("B")))
        return self._ask(CALL, tensors)

    def _ask(self, kind, tensors):
        parts = [struct.pack("<II", kind, len(tensors))]
        for tensor, data in tensors:
            name = tensor.name.encode()
            parts.append(struct.pack(f"<HBBI{len(tensor.shape)}QQ", len(name), TYPES.index(tensor.type),
                                     len(tensor.shape), 0, *tensor.shape, data.nbytes))
            parts += [name, data]
        body = b"".join(parts)
        self.socket.sendall(struct.pack("<I", len(body)) + body)
        return self._answer(self._receive(struct.unpack("<I", self._receive(4))[0]))

    @staticmethod
    def _answer(body):
        status, = struct.unpack_from("<I", body)
        if status != 0:
            raise Refused(body[4:].decode(errors="replace"))
        count, = struct.unpack_from("<I", body, 4)
        at, outputs = 8, {}
        for _ in range(count):
            name_bytes, _, rank, _ = struct.unpack_from("<HBBI", body, at)
            at += 8 + 8 * rank
            size, = struct.unpack_from("<Q", body, at)
            at += 8
            name = body[at:at + name_bytes].decode()
            at += name_bytes
            outputs[name] = body[at:at + size]
            at += size
        return outputs

    def _receive(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server has ended; start it again with laneway serve")
            data += piece
        return bytes(data)

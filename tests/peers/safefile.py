# SPDX-License-Identifier: GPL-3.0-or-later
"""The safetensors format with numpy: an 8-byte header length, a JSON header, the data without holes.

Written here because the test may need nothing beyond torch, and so that scrimp's own reader and writer
meet another implementation of the format.
"""
import json
import struct

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}


def read(path):
    """{name: array} of a file, in the file's order."""
    with open(path, "rb") as f:
        data = f.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in t["data_offsets"])
        array = np.frombuffer(data[begin:end], TYPES[t["dtype"]])
        tensors[name] = array.reshape(t["shape"])
    return tensors


def write(path, tensors):
    """Writes {name: array}; the arrays' types are kept."""
    names = {np.dtype(np_type): name for name, np_type in TYPES.items()}
    header, parts, offset = {}, [], 0
    for name, array in tensors.items():
        part = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(part)]}
        parts.append(part)
        offset += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(parts)

"""Reader of TFRecord files by protobuf and the definition of CRC-32C."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes by its definition, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def read_tfrecords(file: bytes) -> Iterator[bytes]:
    """Yield the records of a file, and check their checksums."""
    place = 0
    while place < len(file):
        length, head = struct.unpack_from("<QI", file, place)
        data = file[place + 12 : place + 12 + length]
        (tail,) = struct.unpack_from("<I", file, place + 12 + length)
        for checked, checksum in ((file[place : place + 8], head), (data, tail)):
            crc = crc32c(checked)
            assert checksum == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        yield data
        place += 16 + length


def make_example_class() -> Any:
    """Return the class of ``tf.train.Example``, by its published definition."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED

    def message(name: str, *fields: Any) -> Any:
        return descriptor_pb2.DescriptorProto(name=name, field=fields)

    def message_field(name: str, number: int, type_name: str, label: int = one, **more: Any) -> Any:
        name_of_type = f".tensorflow.{type_name}"
        return field(
            name=name, number=number, label=label, type=field.TYPE_MESSAGE, type_name=name_of_type, **more
        )

    feature = message(
        "Feature",
        message_field("bytes_list", 1, "BytesList", oneof_index=0),
        message_field("float_list", 2, "FloatList", oneof_index=0),
        message_field("int64_list", 3, "Int64List", oneof_index=0),
    )
    feature.oneof_decl.add(name="kind")
    entry = message(
        "FeatureEntry",
        field(name="key", number=1, label=one, type=field.TYPE_STRING),
        message_field("value", 2, "Feature"),
    )
    entry.options.map_entry = True
    features = message("Features", message_field("feature", 1, "Features.FeatureEntry", many))
    features.nested_type.append(entry)
    file.message_type.extend(
        [
            message("BytesList", field(name="value", number=1, label=many, type=field.TYPE_BYTES)),
            message("FloatList", field(name="value", number=1, label=many, type=field.TYPE_FLOAT)),
            message("Int64List", field(name="value", number=1, label=many, type=field.TYPE_INT64)),
            feature,
            features,
            message("Example", message_field("features", 1, "Features")),
        ]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


TfExample = make_example_class()

"""A recording in a bucket of an S3 server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.recordings import recording

moto_server = pytest.importorskip(
    "moto.server", reason="the dev extra moto[server] is not installed"
)
boto3 = pytest.importorskip("boto3", reason="comes with moto[server]")


@contextmanager
def endpoint() -> Iterator[str]:
    """Address of a server that lives as long as the block."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


def bucket(address: str, key: str, secret: str) -> str:
    """Input address of recording 06, put there with these credentials."""
    s3 = boto3.client(
        "s3", endpoint_url=f"http://{address}", aws_access_key_id=key,
        aws_secret_access_key=secret, region_name="us-east-1",
    )  # fmt: skip
    s3.create_bucket(Bucket="copies")
    logs = recording("06") / "logs"
    for path in sorted(logs.rglob("*")):
        if path.is_file():
            name = f"night/{path.relative_to(logs)}"
            s3.put_object(Bucket="copies", Key=name, Body=path.read_bytes())
    return f"s3://{key}:{secret}@copies/night?{options(address)}"


def options(address: str) -> str:
    """What Arrow's file system has to know of the server."""
    return f"endpoint_override={address}&scheme=http&region=us-east-1"

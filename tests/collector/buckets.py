"""A bucket of S3, at a server of its own on this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest

NAME = "bucket"
SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel("ERROR")
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), sep=":", flush=True)
sys.stdin.read()  # until whoever started it is done, or gone
server.stop()
"""
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "hidden",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,  # whoever runs the tests may have one
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@contextmanager
def serving() -> Iterator[str]:
    """Run a server, and tell its address."""
    program = [sys.executable, "-c", SERVER]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://{server.stdout.readline().strip()}"


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """The address of a bucket, for this process and those that it starts."""
    with serving() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ENDPOINT_URL", server)
        boto3.client("s3").create_bucket(Bucket=NAME)
        yield f"s3://{NAME}"

"""An archive in a bucket: what is peculiar to places that are far away. The rest is tested with every kind of place."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import boto3
import pytest
import s3fs

from collector.apps import running
from collector.archived import verify_archive
from collector.archives import fill
from collector.buckets import NAME, serving
from collector.oracle import REGISTRY, Oracle
from collector.served import PROGRAM
from collector.watched import send, value, wait_until
from hubbub.collector.archive import keeping
from hubbub.collector.archive.file import read_head
from hubbub.collector.archive.place import Place
from hubbub.collector.errors import ArchiveError
from hubbub.collector.store import Store


def test_a_bucket_is_waited_for_and_never_made(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever mistypes its name would have a new one, with whatever access new ones have."""
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    client, name = boto3.client("s3"), "made-later"
    address = f"s3://{name}/archive"
    store, oracle = f"sqlite:///{tmp_path}/hubbub.db", Oracle()
    with running(tmp_path, REGISTRY, store=store, archive=address, archive_reports=5) as app:
        send(app, oracle, 12)
        wait_until(lambda: value(app, "hubbub_archive_errors_total") >= 2)
        assert [each["Name"] for each in client.list_buckets()["Buckets"]] == [NAME]
        client.create_bucket(Bucket=name)
        wait_until(lambda: value(app, "hubbub_archive_parts") < 5)
    with closing(Store(store)) as kept:
        assert verify_archive(kept, Place(address), oracle).total() == 12


def test_what_others_have_just_written_is_found(bucket: str, tmp_path: Path) -> None:
    """Lists that were looked at once are remembered by s3fs, but not by us."""
    fill(tmp_path / "archive")
    near, far = Place(str(tmp_path / "archive")), Place(f"{bucket}/{tmp_path.name}")
    for listed in near.files():
        far.files()
        boto3.client("s3").put_object(Bucket=NAME, Key=f"{tmp_path.name}/{listed.name}", Body=near.read(listed.name))
        assert read_head(far, listed.name) == read_head(near, listed.name)
    assert far.files() == near.files()


@pytest.fixture
def lost(bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place whose server is gone."""
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with serving() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server)
        boto3.client("s3").create_bucket(Bucket=NAME)
        place = Place(f"{bucket}/archive")
        place.write("a.parquet", b"1")
    yield place
    s3fs.S3FileSystem.clear_instance_cache()


def test_whatever_is_asked_of_a_place_that_is_lost_is_an_error_of_the_archive(lost: Place) -> None:
    asked: list[Callable[[], object]] = [
        lambda: Place(lost.address),
        lost.exists,
        lost.files,
        lambda: lost.read("a.parquet"),
        lambda: read_head(lost, "a.parquet"),
        lambda: lost.write("a.parquet", b"2"),
        lambda: lost.delete("a.parquet"),
    ]
    for ask in asked:
        with pytest.raises(ArchiveError, match=r"^bucket/archive.*: Could not connect to the endpoint.*; allowed: "):
            ask()


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}, "Could not connect to the endpoint URL"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, "Invalid endpoint: nonsense"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}, "Unable to loc"),
    ],
)
def test_an_archive_that_cannot_be_reached_is_told_in_one_line(
    bucket: str, changed: dict[str, str], fault: str
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, "aggregate", f"{bucket}/archive"],
        env=os.environ | changed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith(f"Error: bucket/archive: {fault}")
    assert told.stderr.endswith("; allowed: a place that can be reached and used\n")
    assert told.stderr.count("\n") == 1

"""The wire format: exact round trips, strict decoding, bounded memory, and nothing but our own error."""

import datetime
import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.shared import Batch, Report, WireError, decode_batch, encode_batch
from hubbub.shared.packing import pack, unpack
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MAX_REPORTS, MSGPACK, MediaType, new_batch_id

ID = "0123456789abcdef0123456789abcdef"
REPORT = Report("homepage", 1, datetime.date(2026, 11, 16), 17, b"\x00\xff\xfe")
GOOD = {"metric": "homepage", "version": 1, "period": "2026-11-16", "cohort": 17, "bits": "AP_-"}

reports = st.builds(
    Report,
    metric=st.text(min_size=1, max_size=64),
    version=st.integers(1, 2**31 - 1),
    period=st.dates(),
    cohort=st.integers(0, 1023),
    bits=st.binary(min_size=1, max_size=512),
)
batches = st.builds(
    Batch,
    batch=st.text("0123456789abcdef", min_size=32, max_size=32),
    reports=st.lists(reports, max_size=5).map(tuple),
)
media_types = st.sampled_from([JSON, MSGPACK])


def test_json_is_spelled_as_designed() -> None:
    assert json.loads(encode_batch(Batch(ID, (REPORT,)))) == {"batch": ID, "reports": [GOOD]}


def test_msgpack_has_the_same_fields_and_plain_bytes() -> None:
    fields = msgspec.msgpack.decode(encode_batch(Batch(ID, (REPORT,)), MSGPACK))
    assert fields == {"batch": ID, "reports": [GOOD | {"bits": b"\x00\xff\xfe"}]}


@given(batches, media_types)
def test_round_trips_are_exact(batch: Batch, media_type: MediaType) -> None:
    body = encode_batch(batch, media_type)
    assert decode_batch(body, media_type) == batch
    assert encode_batch(decode_batch(body, media_type), media_type) == body


@settings(max_examples=500)
@given(st.binary(max_size=200), media_types)
def test_random_bytes_raise_only_our_error(body: bytes, media_type: MediaType) -> None:
    with pytest.raises(WireError, match="allowed: "):
        decode_batch(body, media_type)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=400)
@given(batch=batches, media_type=media_types, data=st.data())
def test_mutated_batches_raise_only_our_error(batch: Batch, media_type: MediaType, data: st.DataObject) -> None:
    body = bytearray(encode_batch(batch, media_type))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        again = decode_batch(bytes(body), media_type)
    except WireError:
        return
    assert decode_batch(encode_batch(again, media_type), media_type) == again


@settings(max_examples=300)
@given(key=st.sampled_from([*GOOD, "extra"]), value=json_values)
def test_any_value_in_any_field_is_a_report_or_our_error(key: str, value: object) -> None:
    body = json.dumps({"batch": ID, "reports": [GOOD | {key: value}]}).encode()
    try:
        [report] = decode_batch(body).reports
    except WireError:
        return
    assert key in GOOD
    assert 1 <= len(report.bits) <= 512


@pytest.mark.parametrize(
    "change",
    [
        {"metric": ""},
        {"metric": "a" * 65},
        {"metric": 3},
        {"version": 0},
        {"version": 2**31},
        {"version": 1.0},
        {"version": "1"},
        {"version": True},
        {"period": "2026-11-31"},
        {"period": "2026-11-16T00:00:00Z"},
        {"period": "20261116"},
        {"period": 20261116},
        {"cohort": -1},
        {"cohort": 1024},
        {"cohort": None},
        {"bits": ""},
        {"bits": "A"},
        {"bits": "AP/+"},
        {"bits": "AA=="},
        {"bits": "AB"},
        {"bits": "A P_"},
        {"bits": "A\n"},
        {"bits": "é_-"},
        {"bits": "A" * 684},
        {"bits": [1, 0]},
        {"address": "203.0.113.7"},
    ],
    ids=str,
)
def test_each_field_is_strict(change: dict[str, object]) -> None:
    with pytest.raises(WireError, match="allowed: "):
        decode_batch(json.dumps({"batch": ID, "reports": [GOOD | change]}).encode())


@pytest.mark.parametrize("missing", list(GOOD))
def test_no_field_may_be_missing(missing: str) -> None:
    fields = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(WireError, match=missing):
        decode_batch(json.dumps({"batch": ID, "reports": [fields]}).encode())


@pytest.mark.parametrize("batch_id", ["", "0" * 31, "0" * 33, "g" * 32, "A" * 32, ID + "\n", 7, None])
def test_batch_ids_are_32_lower_case_hex_digits(batch_id: object) -> None:
    with pytest.raises(WireError):
        decode_batch(json.dumps({"batch": batch_id, "reports": []}).encode())


def test_bits_may_be_as_long_as_the_longest_report() -> None:
    longest = Report("m", 1, datetime.date(2026, 1, 1), 0, bytes(512))
    for media_type in (JSON, MSGPACK):
        assert decode_batch(encode_batch(Batch(ID, (longest,)), media_type), media_type).reports == (longest,)
        with pytest.raises(WireError):
            decode_batch(
                encode_batch(Batch(ID, (Report("m", 1, longest.period, 0, bytes(513)),)), media_type), media_type
            )


def test_number_of_reports_is_bounded() -> None:
    small = Report("m", 1, datetime.date(2026, 1, 1), 0, b"\0")
    for media_type in (JSON, MSGPACK):
        full = Batch(ID, (small,) * MAX_REPORTS)
        assert decode_batch(encode_batch(full, media_type), media_type) == full
        with pytest.raises(WireError, match="1000"):
            decode_batch(encode_batch(Batch(ID, (small,) * (MAX_REPORTS + 1)), media_type), media_type)


@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
def test_length_is_looked_at_first(media_type: MediaType) -> None:
    with pytest.raises(WireError, match=f"up to {MAX_BATCH_BYTES}"):
        decode_batch(bytes(MAX_BATCH_BYTES + 1), media_type)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\x82\xa5batch\xa0\xa7reports\xdd\x7f\xff\xff\xff", MSGPACK),  # an array that says it has 2^31 items
        (b"\x82\xa5batch\xdb\x7f\xff\xff\xff", MSGPACK),  # a string that says it has 2^31 bytes
        (b"\xdf\x7f\xff\xff\xff", MSGPACK),  # a map that says it has 2^31 keys
        (b"\x81" * 100_000, MSGPACK),
        (b'{"reports":' + b"[" * 1_000_000, JSON),
        (b'{"x":' * 150_000, JSON),
    ],
    ids=["array", "string", "map", "nested msgpack", "nested arrays", "nested objects"],
)
def test_a_sender_does_not_decide_how_much_memory_is_taken(body: bytes, media_type: MediaType) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode_batch(body, media_type)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_batch_ids_do_not_repeat() -> None:
    """128 random bits each: two equal ones among a thousand have a chance of 2e-33."""
    ids = {new_batch_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(decode_batch(encode_batch(Batch(batch_id, ()))).batch == batch_id for batch_id in ids)


@given(st.integers(1, 200), st.data())
def test_packing_puts_bit_i_into_byte_i_div_8(size: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, 2**size - 1))
    packed = pack(bits, size)
    assert [packed[i // 8] >> i % 8 & 1 for i in range(size)] == [bits >> i & 1 for i in range(size)]
    assert unpack(packed, size).tobytes() == packed
    assert [int(bit) for bit in unpack(packed, size)] == [bits >> i & 1 for i in range(size)]


@pytest.mark.parametrize(("packed", "size"), [(b"\x80", 7), (b"\0\0", 7), (b"", 1), (b"\xff", 9), (b"\xff\x02", 9)])
def test_wrong_lengths_and_padding_are_refused(packed: bytes, size: int) -> None:
    with pytest.raises(WireError, match="padding bits zero"):
        unpack(packed, size)

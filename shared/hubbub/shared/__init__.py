"""What client and collector must agree on: metrics, encodings, responses, privacy and the wire format."""

from hubbub.shared.errors import (
    HubbubError,
    ParameterError,
    Problem,
    RegistryError,
    UnknownMetricError,
    UnreadableError,
    ValueRefusedError,
    WireError,
)
from hubbub.shared.metric import Metric
from hubbub.shared.registry import Registry
from hubbub.shared.response import Response
from hubbub.shared.secret import Secret
from hubbub.shared.wire import Batch, Report, decode_batch, encode_batch

__all__ = [
    "Batch",
    "HubbubError",
    "Metric",
    "ParameterError",
    "Problem",
    "Registry",
    "RegistryError",
    "Report",
    "Response",
    "Secret",
    "UnknownMetricError",
    "UnreadableError",
    "ValueRefusedError",
    "WireError",
    "decode_batch",
    "encode_batch",
]

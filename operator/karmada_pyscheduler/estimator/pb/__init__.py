"""The wire format of karmada-scheduler-estimator; ``estimator.proto`` is the source, ``make proto`` makes the rest."""

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError

__all__ = ["DecodeError", "ParseDict", "ParseError"]
